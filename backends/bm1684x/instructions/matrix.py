"""Products of matrices: in sections of columns (bm1684x-cube.md 7)."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.codes import Matrix as Unit
from bmcompiler.backends.bm1684x.codes import Precision, Task
from bmcompiler.backends.bm1684x.instructions.operands import Command
from bmcompiler.backends.bm1684x.isa import MM, MM2
from bmcompiler.backends.lanes.matrices import Matrix
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.instructions.isa import Fields
from bmcompiler.instructions.order import Engine


def product(target: Matrix, left: Matrix, right: Matrix, bias: Matrix | None = None, *, add: bool = False) -> Command:
    """target = left @ right (+ bias), or target += left @ right, of fp32."""
    _, sections, _, width = target.words.shape
    _, parts, _, part = left.words.shape
    fields: Fields = {"tsk_typ": Task.MATRIX, "tsk_eu_typ": Unit.NORMAL, "res_add": add}
    fields |= {"res0_prec": Precision.FP32, "opd0_prec": Precision.FP32, "opd0_sign": 1, "opd1_sign": 1}
    fields |= {"res0_c": sections, "res0_w": width, "res0_addr": target.words.address}
    fields |= {"opd0_n": left.rows, "opd0_c": parts, "opd0_w": part, "opd1_w": left.columns - (parts - 1) * part}
    fields |= {"opd0_addr": left.words.address, "opd1_addr": right.words.address}
    fields |= {"opd2_const": 1} if bias is None else {"opd2_addr": bias.words.address}
    return Command(Engine.TIU, MM, fields)


def by_rows(
    target: Words,
    left: Words,
    right: Words,
    precision: Precision,
    result: Precision,
    signs: tuple[bool, bool] = (True, True),
    *,
    transposed: bool,
) -> Command:
    """target = left @ right of bytes or 16-bit floats; all with their rows in lanes (1, rows, 1, columns).

    `transposed`: of `right` each row is what a row of `left` is multiplied with. `result`: the type of the sums.
    """
    fields: Fields = {"tsk_typ": Task.MATRIX, "tsk_eu_typ": Unit.NT if transposed else Unit.NN}
    fields |= {"res0_prec": result, "opd0_prec": precision, "opd2_const": 1}
    fields |= {"opd0_sign": signs[0], "opd1_sign": signs[1]}
    fields |= {"res0_c": target.shape[1], "res0_w": target.shape[3], "res0_addr": target.address}
    fields |= {"opd1_c": right.shape[1], "opd1_w": right.shape[3]}
    fields |= {"opd0_addr": left.address, "opd1_addr": right.address}
    return Command(Engine.TIU, MM2, fields)
