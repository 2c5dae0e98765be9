"""Element by element on words: arithmetic of floats, bits, and choices.

Where no operand needs stride registers, arithmetic is a command that has none; otherwise the chip's general one.
"""

from __future__ import annotations

from bmcompiler.backends.bm168x.calls import Arguments
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.isa import Eu, Precision, StrideCode, Task
from bmcompiler.backends.bm1684.okkernel.places import Tensor, in_default_layout, lane_of, tensor
from bmcompiler.backends.bm1684.okkernel.recorder import Recorder
from bmcompiler.backends.bm1684.okkernel.rows import Emit, Function, in_group
from bmcompiler.backends.bm1684.okkernel.types import dim4, fp32_bits, fp32_or_addr_t
from bmcompiler.errors import UsageError

Operand = Tensor | int
"""A tensor, or the bits of an immediate."""
ONE = fp32_bits(1.0)
_NONE = dim4(0, 0, 0, 0)
_PER_CHANNEL = dim4(0, 1, 0, 0)
_INT32 = {f"opt_{name}_prec": int(Precision.INT32) for name in ("res0", "opd0", "opd1", "opd2")}
_WITHOUT_STRIDES = (Eu.ADD, Eu.SUB, Eu.MUL, Eu.DIVIDE, Eu.MAC, Eu.MAX)


def sizes(name: str, shape: dim4) -> dict[str, int]:
    """Size fields of an operand."""
    return {f"{name}_{axis}": size for axis, size in zip("nchw", shape)}


def strides(name: str, steps: dim4) -> dict[str, int]:
    """Stride fields of an operand."""
    return {f"{name}_{axis}_str": step for axis, step in zip("nchw", steps)}


def need_one_lane(*operands: Operand) -> None:
    """Raise UsageError where tensors of a command do not begin in one lane."""
    if len({lane_of(one.address) for one in operands if isinstance(one, Tensor)}) > 1:
        raise UsageError("all tensors must begin in the same lane")


def _placed(name: str, operand: Operand) -> dict[str, int]:
    if isinstance(operand, Tensor):
        return {f"{name}_addr": operand.window}
    return {f"{name}_addr": operand, f"opt_{name}_const": 1}


def _strided(name: str, operand: Operand, spread: bool) -> dict[str, int]:
    """`_placed` with strides. spread: immediates have the code of strides, too."""
    fields = _placed(name, operand)
    if isinstance(operand, Tensor):
        return fields | {f"short_{name}_str": int(StrideCode.EXPLICIT)} | strides(name, operand.strides)
    if spread:
        return fields | {f"short_{name}_str": int(StrideCode.EXPLICIT)} | strides(name, _NONE)
    return fields | (strides(name, _NONE) if name == "opd0" else {})


def plain(k: Recorder, unit: Eu, target: Tensor, a: Operand, b: Operand) -> None:
    """target = a `unit` b without strides; of MAC, target += a * b."""
    fields = sizes("res0", target.shape) | _placed("opd0", a) | _placed("opd1", b)
    if unit == Eu.MAX:
        # the stride registers of the first operand must hold the default ones (bm1684.md 6.9); of one image 0, recorded
        steps = target.strides if target.shape.n > 1 else target.strides._replace(n=0)
        fields |= strides("opd0", steps) | {"tsk_typ": Task.COMPARE, "tsk_eu_typ": Eu.CMP, "tsk_opd_num": 0}
    elif unit == Eu.MAC:
        fields |= {"tsk_typ": Task.SCALAR, "tsk_eu_typ": Eu.MUL, "opt_res_add": 1}
    else:
        fields |= {"tsk_typ": Task.SCALAR, "tsk_eu_typ": unit}
    k.tiu(opt_relu=1, res0_addr=target.window, **fields)


def general(k: Recorder, unit: Eu, target: Tensor, *operands: Operand, spread: bool = False, **fields: int) -> None:
    """target = a `unit` b, or the copy of one operand, with strides."""
    for name, operand in zip(("opd0", "opd1"), operands):
        fields |= _strided(name, operand, spread)
    shift = {} if unit == Eu.COPY else {"opt_shift_typ": fields.pop("opt_shift_typ", 0)}
    k.tiu(
        tsk_typ=Task.TENSOR,
        tsk_eu_typ=unit,
        opt_relu=1,
        short_res0_str=StrideCode.EXPLICIT,
        res0_addr=target.window,
        **sizes("res0", target.shape),
        **strides("res0", target.strides),
        **shift,
        **fields,
    )


def compute(k: Recorder, unit: Eu, target: Tensor, a: Operand, b: Operand) -> None:
    """target = a `unit` b of floats, in the shorter form where all tensors are plain."""
    need_one_lane(target, a, b)
    short = all(one.plain for one in (target, a, b) if isinstance(one, Tensor))
    (plain if short and unit in _WITHOUT_STRIDES else general)(k, unit, target, a, b)


# -- what functions emit -----------------------------------------------------------------------------------------------
def _operands(a: Arguments, order: str, number: int) -> list[Operand]:
    """Sources by a letter each: 0 and 1 of several, s the only one, C the constant."""
    names = {"0": "src0", "1": "src1", "s": "src"}
    return [number if letter == "C" else tensor(a, names[letter], a.shape) for letter in order]


def _floats(unit: Eu, order: str, constant: float | None = None) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        number = fp32_bits(a.C if constant is None else constant) if "C" in order else 0
        first, second = _operands(a, order, number)
        compute(k, unit, tensor(a, "dst", a.shape), first, second)

    return emit


def _bits(unit: Eu, order: str, **fields: int) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        operands = _operands(a, order, a.C & 0xFFFF_FFFF if "C" in order else 0)
        target = tensor(a, "dst", a.shape)
        need_one_lane(target, *operands)
        general(k, unit, target, *operands, spread=unit == Eu.SHIFT, **_INT32, **fields)

    return emit


def _select(unit: Eu, order: str) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        operands = _operands(a, order, fp32_bits(a.C) if "C" in order else 0)
        target = tensor(a, "dst", a.shape)
        need_one_lane(target, *operands)
        chosen = {"tsk_opd_num": 3, "opd2_addr": a.select_val, "opt_opd2_const": 1}
        general(k, unit, target, *operands, spread=True, **chosen)

    return emit


def _chosen(a: Arguments, name: str) -> Operand:
    """One operand of a choice: a tensor in the aligned layout, or the bits of a number."""
    given = getattr(a, name)
    if given.is_addr:
        return in_default_layout(Arguments({f"{name}_addr": given.context}), name, a.shape)
    return fp32_bits(given.context) if isinstance(given, fp32_or_addr_t) else int(given.context)


def _choose(k: Recorder, target: Tensor, *operands: Operand) -> None:
    """target = a > b ? c : d; the first operand has stride registers, a number's as if it were an address."""
    first = operands[0]
    begin = first.window if isinstance(first, Tensor) else first
    lane = ((begin - CHIP.lmem_window) & 0xFFFF_FFFF) // CHIP.lmem_size
    channel = target.strides.c
    images = -(-(lane + target.shape.c) // CHIP.lanes) * channel if target.shape.n > 1 else 0
    fields = strides("opd0", target.strides._replace(n=images))
    for name, operand in zip(("opd0", "opd1", "opd2", "opd3"), operands):
        fields |= _placed(name, operand)
    fields |= sizes("res0", target.shape) | {"tsk_typ": Task.COMPARE, "tsk_eu_typ": Eu.SELECT, "tsk_opd_num": 0}
    k.tiu(opt_relu=1, res1_addr=target.window, **fields)


def _two_sided(equal: bool) -> Emit:
    """A choice between two, by one comparison or by both of them."""

    def emit(k: Recorder, a: Arguments) -> None:
        target = in_default_layout(a, "dst", a.shape)
        first, second, taken, other = (_chosen(a, name) for name in ("src0", "src1", "select0", "select1"))
        need_one_lane(target, first, second, taken, other)
        if equal and target.address in [one.address for one in (first, second, other) if isinstance(one, Tensor)]:
            raise UsageError("dst must be none of src0, src1 and select1, which are read twice")
        if equal:
            _choose(k, target, second, first, other, taken)
            _choose(k, target, first, second, other, target)
        else:
            _choose(k, target, first, second, taken, other)

    return emit


def _copy(k: Recorder, a: Arguments) -> None:
    target, source = tensor(a, "dst", a.shape), tensor(a, "src", a.shape)
    need_one_lane(target, source)
    general(k, Eu.COPY, target, source, tsk_opd_num=1)


def _set(k: Recorder, a: Arguments) -> None:
    general(k, Eu.OR, tensor(a, "dst", a.shape), 0, a.C, spread=False, **_INT32)


def linear(k: Recorder, target: Tensor, source: Tensor, factor: Operand, added: Operand) -> None:
    """target = source * factor + added, without strides; the latter are immediates or a word per channel."""
    k.tiu(
        tsk_typ=Task.LINEAR,
        tsk_eu_typ=Eu.MAC,
        tsk_opd_num=3,
        opt_relu=1,
        res0_addr=target.window,
        **sizes("res0", target.shape),
        **_placed("opd0", source),
        **_placed("opd1", added),
        **_placed("opd2", factor),
    )


def _by_channel(*names: str) -> Emit:
    """scale, bias, or both."""
    units = {"scale": Eu.MUL, "bias": Eu.ADD}

    def emit(k: Recorder, a: Arguments) -> None:
        target, source = tensor(a, "dst", a.shape), tensor(a, "src", a.shape)
        channels = {name: _channels(a, name) for name in names}
        need_one_lane(target, source, *channels.values())
        if target.plain and source.plain:
            linear(k, target, source, channels.get("scale", ONE), channels.get("bias", 0))
            return
        for name, each in channels.items():
            general(k, units[name], target, source, each)
            source = target

    return emit


def _channels(a: Arguments, name: str) -> Tensor:
    """A word per channel, without gaps in each lane."""
    found = tensor(a, name, dim4(1, a.shape.c, 1, 1))
    if found.address % 4:
        raise UsageError(f"{name} must begin at a multiple of 4 bytes")
    return found._replace(given=_PER_CHANNEL)


_TO, _ONE = "local_addr_t dst_addr, ", "local_addr_t dst_addr, local_addr_t src_addr, "
_TWO = "local_addr_t dst_addr, local_addr_t src0_addr, local_addr_t src1_addr, "
_SHAPE, _STRIDE = "const dim4 *shape, const dim4 *dst_stride", "const dim4 *src_stride"
_STRIDES = "const dim4 *src0_stride, const dim4 *src1_stride"
_CHOICES = (
    "const fp32_or_addr_t *src0, const fp32_or_addr_t *src1, const x32_or_addr_t *select0, const x32_or_addr_t *select1"
)
_MIDDLE = {"01": _TWO, "sC": _ONE, "Cs": _ONE}


def _row(name: str, formula: str, order: str, emit: Emit, constant: str = "float", more: str = "") -> Function:
    number = f"{constant} C, " if "C" in order and constant else ""
    ends = _STRIDES if order == "01" else _STRIDE
    return Function(f"void okk_bdc_{name}({_MIDDLE[order]}{number}{more}{_SHAPE}, {ends})", formula, emit)


_FLOATS = (
    ("add", "src0 + src1", Eu.ADD, "01"), ("add_C", "src + C", Eu.ADD, "sC"),
    ("sub", "src0 - src1", Eu.SUB, "01"), ("sub_C", "src - C", Eu.SUB, "sC"), ("C_sub", "C - src", Eu.SUB, "Cs"),
    ("mul", "src0 * src1", Eu.MUL, "01"), ("mul_C", "src * C", Eu.MUL, "sC"),
    ("div", "src0 / src1", Eu.DIVIDE, "01"), ("div_C", "src / C", Eu.DIVIDE, "sC"),
    ("C_div", "C / src", Eu.DIVIDE, "Cs"),
    ("mac", "dst + src0 * src1", Eu.MAC, "01"), ("mac_C", "dst + src * C", Eu.MAC, "sC"),
    ("max", "max(src0, src1)", Eu.MAX, "01"), ("max_C", "max(src, C)", Eu.MAX, "sC"),
    ("min", "min(src0, src1)", Eu.MIN, "01"), ("min_C", "min(src, C)", Eu.MIN, "sC"),
)  # fmt: skip
_FIXED = (
    ("relu", "max(src, 0)", Eu.MAX, "sC", 0.0),
    ("reciprocal", "1 / src", Eu.DIVIDE, "Cs", 1.0),
    ("neg", "0 - src", Eu.SUB, "Cs", 0.0),
)
_LOGIC = (("and", "&", Eu.AND), ("or", "|", Eu.OR), ("xor", "^", Eu.XOR))
_SHIFTS = (("arithmetic", 1), ("logical", 0))
_SELECTS = (
    ("greater", "src0 > src1", Eu.SELECT_GT, "01"), ("greater_C", "src > C", Eu.SELECT_GT, "sC"),
    ("C_greater", "C > src", Eu.SELECT_GT, "Cs"), ("equal", "src0 == src1", Eu.SELECT_EQ, "01"),
    ("equal_C", "src == C", Eu.SELECT_EQ, "sC"),
)  # fmt: skip


def _shift_rows(word: str, signed: int) -> list[Function]:
    return [
        _row(f"32bit_{name}", f"{text}, {word}", order, _bits(Eu.SHIFT, order, opt_shift_typ=signed), constant)
        for name, text, order, constant in (
            (f"{word}_shift", "src0 shifted by src1, to the right where it is negative", "01", ""),
            (f"{word}_shift_C", "src shifted by C, to the right where it is negative", "sC", "int"),
            (
                f"C_{word}_shift",
                "C shifted by src, to the right where it is negative",
                "Cs",
                "int" if signed else "unsigned int",
            ),
        )
    ]


ROWS = in_group(
    "Element by element",
    Function(f"void okk_bdc_32bit_cpy({_ONE}{_SHAPE}, {_STRIDE})", "src", _copy),
    Function(f"void okk_bdc_32bit_set_C({_TO}x32 C, {_SHAPE})", "C", _set),
    *(_row(name, text, order, _floats(unit, order)) for name, text, unit, order in _FLOATS),
    *(_row(name, text, order, _floats(unit, order, value), "") for name, text, unit, order, value in _FIXED),
    *(
        _row(f"32bit_{name}{end}", f"{first} {sign} {second}", order, _bits(unit, order), "x32")
        for name, sign, unit in _LOGIC
        for end, first, second, order in (("", "src0", "src1", "01"), ("_C", "src", "C", "sC"))
    ),
    *(row for word, signed in _SHIFTS for row in _shift_rows(word, signed)),
    *(
        _row(f"{name}_select_value", f"{text} ? select_val : 0", order, _select(unit, order), more="x32 select_val, ")
        for name, text, unit, order in _SELECTS
    ),
    *(
        Function(f"void okk_bdc_{name}_select({_TO}{_CHOICES}, const dim4 *shape)", text, _two_sided(name == "equal"))
        for name, text in (
            ("greater", "src0 > src1 ? select0 : select1"),
            (
                "equal",
                "src0 > src1 or src1 > src0 ? select1 : select0; where one of src0 and src1 is a number, the second "
                "command of the vendor's library takes it for an address, and the address for a number",
            ),
        )
    ),
    *(
        Function(
            f"void okk_bdc_{'_'.join(names)}({_ONE}{''.join(f'local_addr_t {name}_addr, ' for name in names)}"
            f"{_SHAPE}, {_STRIDE})",
            text,
            _by_channel(*names),
        )
        for names, text in (
            (("bias",), "src + bias(c)"),
            (("scale",), "src * scale(c)"),
            (("scale", "bias"), "src * scale(c) + bias(c)"),
        )
    ),
)
