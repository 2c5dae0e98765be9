"""Products of matrices in fp32 (bm1684.md 6.3)."""

from __future__ import annotations

from bmcompiler.backends.bm1684.chip import local_address
from bmcompiler.backends.bm1684.instructions.operands import Commands, Fields, bytes_of
from bmcompiler.backends.bm1684.instructions.transfers import Side, matrix, of_words
from bmcompiler.backends.bm1684.isa import Direction, Task
from bmcompiler.backends.lanes.matrices import Matrix


def product(
    build: Commands, target: Matrix, left: Matrix, right: Matrix, bias: Matrix | None = None, *, add: bool = False
) -> None:
    """target = left @ right (+ bias), or target += left @ right."""
    reads = [bytes_of(left.words), bytes_of(right.words)]
    fields: Fields = {}
    if add:
        reads.append(bytes_of(target.words))
        fields["opt_res_add"] = 1
    elif bias is not None:
        reads.append(bytes_of(bias.words))
        fields |= {"tsk_opd_num": 3, "opd2_addr": local_address(bias.words.address)}
    _, sections, _, width = target.words.shape
    _, parts, _, part = left.words.shape
    build.tiu(
        reads,
        [bytes_of(target.words)],
        tsk_typ=Task.MATRIX,
        opt_relu=1,
        res0_c=sections,
        res0_w=width,
        opd0_n=left.rows,
        opd0_c=parts,
        opd0_w=part,
        opd1_w=left.columns - (parts - 1) * part,
        res0_addr=local_address(target.words.address),
        opd0_addr=local_address(left.words.address),
        opd1_addr=local_address(right.words.address),
        **fields,
    )


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
