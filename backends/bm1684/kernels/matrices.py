"""Matrices in local memory: rows cut into sections of 16 or 32 columns, section s in lane s (bm1684.md 4.5, 5.3)."""

from __future__ import annotations

from bmcompiler.backends.bm1684.build import Build, lane_bytes, side_fields
from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.isa import Direction, Function
from bmcompiler.backends.bm1684.layout import Shape, aligned_strides

SECTION = 32
"""fp32 columns of a section, as in vendor programs: one step of the execution units."""
ROW = SECTION * CHIP.lanes
"""Columns that fill one row of sections of all lanes."""


def matrix_shape(rows: int, columns: int) -> Shape:
    """The tensor (rows, sections, 1, width) that an fp32 matrix is stored as; half sections where lanes are left."""
    width = min(columns, SECTION if columns > ROW // 2 else SECTION // 2)
    return rows, -(-columns // width), 1, width


def matrix_bytes(rows: int, columns: int) -> int:
    """Bytes per lane of a matrix: 128 for each row and 2048 columns."""
    return lane_bytes(matrix_shape(rows, columns))


def load_matrix(
    build: Build, source: int, rows: int, columns: int, pitch: int, address: int, transposed: bool = False
) -> None:
    """Load rows x columns of fp32; in global memory rows lie `pitch` elements apart, columns do when `transposed`."""
    outer = (1, 1, columns, rows) if transposed else (1, 1, rows, columns)
    shape = matrix_shape(rows, columns)
    build.gdma(
        [],
        [(address, address + lane_bytes(shape))],
        direction=Direction.SYSTEM_TO_LOCAL,
        special_func=Function.NC_TRANSPOSE if transposed else Function.COPY,
        sys_mem_type=1,
        stride_enable=1,
        src_addr=source,
        dst_addr=local_address(address),
        **side_fields("src", outer, (0, 0, pitch, 1)),
        **side_fields("dst", shape, aligned_strides(shape)),
    )


def store_matrix(build: Build, target: int, rows: int, columns: int, pitch: int, address: int) -> None:
    """Store rows x columns of fp32 to rows `pitch` elements apart."""
    shape = matrix_shape(rows, columns)
    build.gdma(
        [(address, address + lane_bytes(shape))],
        [],
        direction=Direction.LOCAL_TO_SYSTEM,
        sys_mem_type=1,
        stride_enable=1,
        src_addr=local_address(address),
        dst_addr=target,
        **side_fields("src", shape, aligned_strides(shape)),
        **side_fields("dst", (1, 1, rows, columns), (0, 0, pitch, 1)),
    )
