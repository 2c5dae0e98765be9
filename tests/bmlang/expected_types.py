"""The element types that each operator takes, transcribed once more from bmlang.md 4 and the seed, as predicates.

Nothing here is taken from the table of the package: a slip of the pen in either shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bmcompiler.bmlang import FLOAT32, INT8, INT16, INT32, UINT8, UINT16, DataType

Types = Sequence[DataType]
Rule = Callable[[Types, Types], bool]
Q8, Q16 = {INT8, UINT8}, {INT16, UINT16}
Q = Q8 | Q16
ANY = Q | {FLOAT32, INT32}
UNSIGNED = {UINT8, UINT16}


def all_of(*kinds: DataType) -> Rule:
    return lambda i, o: len({*i, *o}) == 1 and i[0] in kinds


def floats(i: Types, o: Types) -> bool:
    return {*i, *o} == {FLOAT32}


def none(i: Types, o: Types) -> bool:
    return False


float_or_int32 = all_of(FLOAT32, INT32)
every_same = all_of(*ANY)
float_or_q = all_of(FLOAT32, *Q)
float_or_q8 = all_of(FLOAT32, *Q8)
float_int32_q8 = all_of(FLOAT32, INT32, *Q8)
q_or_int32 = all_of(INT32, *Q)


def within(types: Types, allowed: set[DataType]) -> bool:
    return set(types) <= allowed


def saturating_sum(i: Types, o: Types) -> bool:
    return within((*i, *o), Q) and not (o[0] == UINT16 and INT16 in i)


def q8_product(i: Types, o: Types) -> bool:
    return within(i, Q8) and within(o, Q)


def either(*rules: Rule) -> Rule:
    return lambda i, o: any(rule(i, o) for rule in rules)


def product_shift(i: Types, o: Types) -> bool:
    a, b = i
    if not (a in Q and b in Q8 and o[0] in Q):
        return False
    return not (a in Q16 and (a == INT16 or b == INT8)) or o[0] not in UNSIGNED


def sum_shift(i: Types, o: Types) -> bool:
    if not within((*i, *o), Q):
        return False
    return not (within((*i, *o), Q16) and INT16 in i) or o[0] == INT16


def difference_shift(i: Types, o: Types) -> bool:
    return within(i, Q) and o[0] in {INT8, INT16}


def cast_1682(i: Types, o: Types) -> bool:
    return (i[0], o[0]) in {(FLOAT32, INT32), (INT32, FLOAT32)} or (
        FLOAT32 in (i[0], o[0]) and (i[0] in Q8 or o[0] in Q8)
    )


def cast_1684(i: Types, o: Types) -> bool:
    a, b = i[0], o[0]
    return a != b and (FLOAT32 in (a, b) or INT32 not in (a, b))


def arith_shift(i: Types, o: Types) -> bool:
    return i[0] == o[0] and ((i[0] == INT32 and i[1] == INT32) or (i[0] in Q16 and i[1] == INT16))


def arith_shifts(i: Types, o: Types) -> bool:
    return i[0] == o[0] and i[0] in Q16 | {INT32} and i[1] != FLOAT32


def signed(dtype: DataType) -> bool:
    return dtype not in UNSIGNED


def round_shift(i: Types, o: Types) -> bool:
    return i[0] in Q16 and o[0] in Q and signed(i[0]) == signed(o[0]) and i[1] == INT16


def round_shifts(i: Types, o: Types) -> bool:
    return i[0] in Q16 and o[0] in Q and signed(i[0]) == signed(o[0]) and i[1] != FLOAT32


def with_int32(count: int, rule: Rule) -> Rule:
    """The last `count` inputs are INT32 parameters."""
    return lambda i, o: set(i[-count:]) == {INT32} and rule(i[:-count], o)


def conv_1684(mode: str, i: Types, o: Types) -> bool:
    if floats(i, o):
        return True
    wide = Q16 | ({INT32, FLOAT32} if mode != "low" else set())
    return within(i[:2], Q8) and within(i[2:], wide) and o[0] in (Q8 if mode == "low" else Q)


def deconv_1684(mode: str, i: Types, o: Types) -> bool:
    return floats(i, o) or (mode == "low" and conv_1684("low", i, o))


def matmul_1684(mode: str, i: Types, o: Types) -> bool:
    if floats(i, o):
        return True
    wide = Q16 | ({INT32} if mode != "low" else set())
    right = within(i[:2], Q8) and within(i[2:], wide) and o[0] in (Q8 if mode == "low" else Q)
    return right and (o[0] not in UNSIGNED or within(i, UNSIGNED))


def active_1684(kind: str, i: Types, o: Types) -> bool:
    return floats(i, o) or (kind in ("ACTIVE_RELU", "ACTIVE_ABSVAL") and within((*i, *o), Q))


def first_same(rule: Rule) -> Rule:
    """The first input and the output by a rule; the second one of any type (a number to pad with)."""
    return lambda i, o: rule((i[0], *i[2:]), o)


def pads(rule: Rule) -> Rule:
    """pad_v2: tensor, INT32 paddings, a number of any type."""
    return lambda i, o: i[1] == INT32 and rule(i[:1], o)


def two_floats_and_index(i: Types, o: Types) -> bool:
    return tuple((*i, *o)) == (FLOAT32, FLOAT32, INT32)


SUM = (float_or_int32, either(float_or_int32, saturating_sum))
PRODUCT = (float_or_int32, either(float_or_int32, q8_product))
SAME = (float_or_int32, every_same)
FLOATS = (floats, floats)
COMPARE = (floats, float_or_q)
MOVED = (floats, every_same)
STRIDED_SUM = (floats, either(floats, saturating_sum))
INDEX = (lambda i, o: i[0] == FLOAT32 and o[0] == INT32,) * 2

EXPECTED: dict[str, tuple[Rule, Rule]] = {
    **dict.fromkeys(("add", "sub", "adds", "subs", "rsubs"), SUM),
    **dict.fromkeys(("mul", "muls"), PRODUCT),
    **dict.fromkeys(("max", "min", "maxs", "mins", "clamp"), SAME),
    **dict.fromkeys(("div", "divs", "ceil", "floor", "sin", "cos", "stride_div", "stride_div_offset"), FLOATS),
    "cast": (cast_1682, cast_1684),
    **dict.fromkeys(("mul_shift", "muls_shift"), (none, product_shift)),
    **dict.fromkeys(("add_shift", "adds_shift"), (none, sum_shift)),
    **dict.fromkeys(("sub_shift", "subs_shift", "rsubs_shift"), (none, difference_shift)),
    **dict.fromkeys((n + s for n in ("gt", "ge", "lt", "le", "eq", "ne") for s in ("", "s")), COMPARE),
    **dict.fromkeys(("arith_lshift", "arith_rshift"), (none, arith_shift)),
    **dict.fromkeys(("arith_lshifts", "arith_rshifts"), (none, arith_shifts)),
    "round_rshift": (none, round_shift),
    "round_rshifts": (none, round_shifts),
    **dict.fromkeys((f"bit_{n}{s}" for n in ("and", "or", "xor") for s in ("", "s")), (none, q_or_int32)),
    **dict.fromkeys((f"stride_{n}{s}" for n in ("add", "sub") for s in ("", "_offset")), STRIDED_SUM),
    **dict.fromkeys(("stride_mul", "stride_mul_offset"), (floats, either(floats, q8_product))),
    **dict.fromkeys((f"stride_{n}{s}" for n in ("max", "min", "cpy") for s in ("", "_offset")), COMPARE),
    "permute": (float_int32_q8, every_same),
    **dict.fromkeys(
        ("copy", "tile", "broadcast", "extract", "concat", "split", "squeeze", "expand_dims", "reshape"), MOVED
    ),
    **dict.fromkeys(("tile_v2", "reshape_v2"), (with_int32(1, floats), with_int32(1, every_same))),
    "extract_v2": (with_int32(3, floats), with_int32(3, every_same)),
    "interleave": (floats, float_int32_q8),
    "pad": (first_same(floats), first_same(every_same)),
    "pad_v2": (pads(floats), pads(every_same)),
    **dict.fromkeys(("space_to_batch", "batch_to_space"), (floats, float_int32_q8)),
    **dict.fromkeys(("space_to_batch_v2", "batch_to_space_v2"), (with_int32(2, floats), with_int32(2, float_int32_q8))),
    "condition_select": (floats, lambda i, o: i[0] in Q8 | {FLOAT32} and float_or_q8(i[1:], o)),
    "select": (floats, lambda i, o: float_or_q8(i[:2], i[:1]) and float_or_q8(i[2:], o)),
    "masked_select": (floats, lambda i, o: i[1] in {FLOAT32, INT32} and float_or_int32(i[:1], o)),
    "index_select": (
        lambda i, o: i[1] == INT32 and floats(i[:1], o),
        lambda i, o: i[1] == INT32 and float_or_int32(i[:1], o),
    ),
    "where": INDEX,
    "lut": (none, lambda i, o: i[0] in Q8 and i[1] == o[0] and o[0] in Q8 | {FLOAT32}),
    **dict.fromkeys(("pool", "upsample", "reduce"), (floats, float_or_q8)),
    "arg": (
        lambda i, o: i[0] == FLOAT32 and o[0] in {INT32, FLOAT32},
        lambda i, o: (i[0] == FLOAT32 and o[0] in {INT32, FLOAT32}) or (i[0] in Q8 and o[0] == INT32),
    ),
    **dict.fromkeys(("topk", "sort"), (two_floats_and_index,) * 2),
    "argsort": (lambda i, o: i[0] == FLOAT32 and o[0] in {INT32, FLOAT32},) * 2,
    "shape_fetch": (lambda i, o: i[0] == FLOAT32 and o[0] == INT32, lambda i, o: o[0] == INT32),
    "constdata": (lambda i, o: o[0] == FLOAT32, lambda i, o: True),
    "number_like": (floats, lambda i, o: i[1] == o[0]),
    "sequence_gen": (none, lambda i, o: i[0] == INT32 and o[0] in {FLOAT32, INT32}),
    "nms": (lambda i, o: set(i) == {FLOAT32} and o[0] == INT32,) * 2,
    "nms_v2": (lambda i, o: set(i) == {FLOAT32} and o[0] == INT32,) * 2,
    "customed_ops": (floats, lambda i, o: True),
}
BY_VARIANT = {"conv": conv_1684, "deconv": deconv_1684, "matrix_mul": matmul_1684, "active": active_1684}


def allowed(name: str, chip: str, variant: str, ins: Types, outs: Types) -> bool:
    """Whether an operator takes these types on a chip."""
    if name in BY_VARIANT:
        return floats(ins, outs) if chip == "BM1682" else BY_VARIANT[name](variant, ins, outs)
    return EXPECTED[name][chip != "BM1682"](ins, outs)
