"""Products of matrices in fp32 (bm1684.md 6.3)."""

from __future__ import annotations

from typing import NamedTuple

from bmcompiler.backends.bm1684.chip import local_address
from bmcompiler.backends.bm1684.instructions.operands import Commands, Fields, bytes_of
from bmcompiler.backends.bm1684.isa import Task
from bmcompiler.backends.lanes.operands import Words


class Matrix(NamedTuple):
    """A matrix in local memory: its size, and the tensor (rows, sections, 1, width) that holds it (bm1684.md 4.5)."""

    rows: int
    columns: int
    words: Words


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
