"""Matrices in local memory: rows cut into sections of 16 or 32 columns, section s in lane s (bm1684.md 4.5, 5.3)."""

from __future__ import annotations

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.instructions.matrix import Matrix
from bmcompiler.backends.bm1684.instructions.operands import Commands
from bmcompiler.backends.bm1684.instructions.transfers import Side, matrix, of_words
from bmcompiler.backends.bm1684.isa import Direction
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.operands import Words

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
    return CHIP.aligned_bytes(matrix_shape(rows, columns))


def matrix_at(address: int, rows: int, columns: int) -> Matrix:
    """The matrix of so many rows and columns at an address."""
    return Matrix(rows, columns, Words(address, matrix_shape(rows, columns)))


def load_matrix(build: Commands, source: int, pitch: int, target: Matrix, transposed: bool = False) -> None:
    """Load a matrix of fp32; in global memory rows lie `pitch` elements apart, columns do when `transposed`."""
    rows, columns, words = target
    shape = (1, 1, columns, rows) if transposed else (1, 1, rows, columns)
    outer = Side(source, shape, (0, 0, pitch, 1))
    matrix(build, Direction.SYSTEM_TO_LOCAL, outer, of_words(words), transposed=transposed)


def store_matrix(build: Commands, target: int, pitch: int, source: Matrix) -> None:
    """Store a matrix of fp32 to rows `pitch` elements apart."""
    outer = Side(target, (1, 1, source.rows, source.columns), (0, 0, pitch, 1))
    matrix(build, Direction.LOCAL_TO_SYSTEM, of_words(source.words), outer)
