"""Products of matrices: in sections of columns (bm1684x-cube.md 7)."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.codes import Matrix as Unit
from bmcompiler.backends.bm1684x.codes import Precision, Task
from bmcompiler.backends.bm1684x.instructions.operands import Command
from bmcompiler.backends.bm1684x.isa import MM
from bmcompiler.backends.bm1684x.stream import Fields
from bmcompiler.backends.lanes.matrices import Matrix
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
