"""Integer element-wise ops on the BM1684: the chip gives what the ops mean, bit for bit."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from bm1684_nets import FULL, Net, check, local_memory, random_inputs, with_extremes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.packed.int_recipes import program
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.codegen.tiling import boxes
from bmcompiler.ir import TensorType, Value
from bmcompiler.ops.elements.activation import Prelu
from bmcompiler.ops.elements.integer import MulsShift
from bmcompiler.target import unsupported_reason

SEED = st.integers(0, 99)
LANES = st.sampled_from([2048, 16384, FULL])
BYTES, NARROW = ["i8", "u8"], ["i8", "u8", "i16", "u16"]
property_test = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
SHAPE = st.one_of(
    st.lists(st.integers(1, 9), min_size=1, max_size=5).map(tuple),
    st.sampled_from([(1, 70, 5, 7), (5, 130, 3, 3), (9, 3, 20, 33), (1000,), (1, 1, 1, 521), (130, 66), (6, 65, 2, 3)]),
)
PATTERN = st.lists(st.integers(0, 3), min_size=5, max_size=5)


def _broadcast(shape: tuple[int, ...], pattern: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of each axis: 1 in the first operand (1), 1 in the second one (2), else full."""
    a = tuple(1 if kind == 1 else size for size, kind in zip(shape, pattern))
    b = tuple(1 if kind == 2 else size for size, kind in zip(shape, pattern))
    return a, b


def run(make: Any, *operands: tuple[str, tuple[int, ...]], seed: int = 0, lanes: int = FULL, constant: int = -1) -> Any:
    """Compile and compare one op; extremes are sown into all operands. Returns the op.

    Args: operands: (dtype, shape) of each; constant: the one that is a weight.
    """
    net = Net([], seed)
    values = []
    for number, (dtype, shape) in enumerate(operands):
        if number == constant:
            values.append(net.integers(dtype, *shape))
        else:
            values.append(net.b.input(f"x{number}", TensorType(shape, dtype)))
    module = net.module([make(net, *values)])
    (op,) = [op for op in module.main.ops if op.short_name not in ("weight", "return")][-1:]
    with local_memory(lanes):
        reasons = [unsupported_reason(TARGET, o) for o in module.main.ops if o.short_name not in ("weight", "return")]
        if not any(reason and (lanes or "four axes" in reason) for reason in reasons):
            check(module, inputs=with_extremes(random_inputs(module, seed), seed))
    return op


def _out(op_dtype: str, *shapes: tuple[int, ...]) -> TensorType:
    return TensorType(np.broadcast_shapes(*shapes), op_dtype)


@property_test
@given(
    st.sampled_from(["add", "sub", "add_shift", "sub_shift"]),
    *(st.sampled_from(NARROW) for _ in range(3)),
    SHAPE,
    PATTERN,
    st.integers(0, 9),
    LANES,
    st.sampled_from([-1, 1]),
    SEED,
)
def test_sums(
    name: str, a: str, b: str, out: str, shape: Any, pattern: Any, shift: int, lanes: int, constant: int, seed: int
) -> None:
    shapes = _broadcast(shape, pattern)
    attributes = {"rshift": shift} if name.endswith("shift") else {}

    def make(net: Net, x: Value, y: Value) -> Value:
        return getattr(net.b, name)(x, y, **attributes, out=_out(out, *shapes))

    run(make, (a, shapes[0]), (b, shapes[1]), seed=seed, lanes=lanes, constant=constant)


@property_test
@given(
    st.sampled_from(["mul", "mul_shift"]),
    st.sampled_from(NARROW),
    st.sampled_from(BYTES),
    st.sampled_from(NARROW),
    SHAPE,
    PATTERN,
    st.integers(0, 16),
    LANES,
    SEED,
)
def test_products(
    name: str, a: str, b: str, out: str, shape: Any, pattern: Any, shift: int, lanes: int, seed: int
) -> None:
    shapes = _broadcast(shape, pattern)
    attributes = {"rshift": shift} if name == "mul_shift" else {}

    def make(net: Net, x: Value, y: Value) -> Value:
        return getattr(net.b, name)(x, y, **attributes, out=_out(out, *shapes))

    run(make, (a, shapes[0]), (b, shapes[1]), seed=seed, lanes=lanes)


@property_test
@given(st.sampled_from(NARROW), st.sampled_from(NARROW), SHAPE, st.integers(-255, 255), st.integers(0, 16), LANES, SEED)
def test_product_with_a_constant(
    source: str, out: str, shape: Any, multiplier: int, shift: int, lanes: int, seed: int
) -> None:
    def make(net: Net, x: Value) -> Value:
        return net.b.muls_shift(x, multiplier=multiplier, rshift=shift, out=TensorType(shape, out))

    run(make, (source, shape), seed=seed, lanes=lanes)


@property_test
@given(st.sampled_from(BYTES), st.sampled_from(NARROW), st.integers(-32767, 65535), st.integers(0, 20), SEED)
def test_bytes_times_a_larger_constant(source: str, out: str, multiplier: int, shift: int, seed: int) -> None:
    def make(net: Net, x: Value) -> Value:
        return net.b.muls_shift(x, multiplier=multiplier, rshift=shift, out=TensorType((3, 70, 4), out))

    run(make, (source, (3, 70, 4)), seed=seed)


@property_test
@given(
    st.lists(st.tuples(st.sampled_from(BYTES), st.integers(-140, 260)), min_size=1, max_size=4),
    st.sampled_from(NARROW),
    SHAPE,
    st.integers(0, 15),
    LANES,
    SEED,
)
def test_weighted_sum(terms: Any, out: str, shape: Any, shift: int, lanes: int, seed: int) -> None:
    def make(net: Net, *values: Value) -> Value:
        multipliers = tuple(multiplier for _, multiplier in terms)
        return net.b.mac_shift(*values, multipliers=multipliers, rshift=shift, out=TensorType(shape, out))

    run(make, *((dtype, shape) for dtype, _ in terms), seed=seed, lanes=lanes)


@property_test
@given(st.sampled_from(NARROW), st.sampled_from(NARROW), st.integers(-40000, 70000), st.integers(0, 20), SHAPE, SEED)
def test_sum_with_a_constant(source: str, out: str, value: int, shift: int, shape: Any, seed: int) -> None:
    run(
        lambda net, x: net.b.adds_shift(x, value=value, rshift=shift, out=TensorType(shape, out)),
        (source, shape),
        seed=seed,
    )
    run(lambda net, x: net.b.round_rshift(x, rshift=shift, out=TensorType(shape, out)), (source, shape), seed=seed)


@property_test
@given(st.sampled_from(["max", "min"]), st.sampled_from(NARROW), SHAPE, PATTERN, LANES, SEED)
def test_extremes(name: str, dtype: str, shape: Any, pattern: Any, lanes: int, seed: int) -> None:
    a, b = _broadcast(shape, pattern)
    run(lambda net, x, y: getattr(net.b, name)(x, y), (dtype, a), (dtype, b), seed=seed, lanes=lanes)


@pytest.mark.parametrize("lanes", [1536, 2048, 3072, 4096])
@pytest.mark.parametrize("dtype", ["i8", "i16"])
def test_an_operand_that_repeats_along_channels_is_loaded_for_each_width_of_tiles(dtype: str, lanes: int) -> None:
    shapes = ((9, 1, 20, 3), (9, 130, 1, 3))
    run(lambda net, x, y: net.b.max(x, y), *((dtype, shape) for shape in shapes), lanes=lanes)


@property_test
@given(st.sampled_from(["maxs", "mins"]), st.sampled_from(NARROW), st.floats(0, 1), SHAPE, SEED)
def test_extremes_with_a_constant(name: str, dtype: str, part: float, shape: Any, seed: int) -> None:
    limits = np.iinfo(TensorType((), dtype).numpy)
    value = round(limits.min + part * (limits.max - limits.min))
    run(lambda net, x: getattr(net.b, name)(x, value=value), (dtype, shape), seed=seed)


@pytest.mark.parametrize("dtype", [*NARROW, "i32"])
@pytest.mark.parametrize("shape", [(5, 66, 3, 2), (7,), (2, 3, 4, 5, 3)])
def test_relu(dtype: str, shape: Any) -> None:
    run(lambda net, x: net.b.relu(x), (dtype, shape))


@property_test
@given(st.sampled_from(NARROW), st.sampled_from(NARROW), st.sampled_from(NARROW), SHAPE, SEED)
def test_add_with_relu(a: str, b: str, out: str, shape: Any, seed: int) -> None:
    out_type = TensorType(shape, out)
    run(lambda net, x, y: net.b.add(x, y, activation="relu", out=out_type), (a, shape), (b, shape), seed=seed)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", ["add", "sub"])
def test_wrapping_sums(name: str, dtype: str) -> None:
    run(lambda net, x, y: getattr(net.b, name)(x, y, wrap=True), (dtype, (3, 5, 7)), (dtype, (5, 1)))


@property_test
@given(
    st.sampled_from([(2, 70, 3, 5), (9, 3, 4), (1, 130, 2, 2), (5, 6)]),
    st.booleans(),
    st.integers(0, 255),
    st.integers(0, 9),
    st.integers(0, 9),
    LANES,
    SEED,
)
def test_prelu(shape: Any, shared: bool, multiplier: int, shift: int, slope_shift: int, lanes: int, seed: int) -> None:
    def make(net: Net, x: Value) -> Value:
        slope = net.integers("i8", 1 if shared else shape[1])
        attributes = {"multiplier": multiplier, "rshift": shift, "slope_rshift": slope_shift}
        return net.b.prelu(x, slope, **attributes)

    run(make, ("i8", shape), seed=seed, lanes=lanes)


@pytest.mark.parametrize(
    ("multiplier", "shift", "slope_shift", "commands"),
    [(1, 0, 7, 2), (64, 6, 8, 2), (90, 7, 8, 3), (127, 7, 7, 3), (1, 0, 5, 5)],
)
def test_slopes_that_are_not_steep_cost_what_they_cost_in_float(
    multiplier: int, shift: int, slope_shift: int, commands: int
) -> None:
    net = Net(((1, 70, 3, 5),), 0, "i8")
    attributes = {"multiplier": multiplier, "rshift": shift, "slope_rshift": slope_shift}
    made = net.b.prelu(net.inputs[0], net.integers("i8", 70), **attributes)
    assert isinstance(made.op, Prelu)
    found = program(made.op)
    assert found is not None and len(found.steps) == commands
    check(net.module([made]))


@property_test
@given(st.sampled_from(BYTES), st.sampled_from([*NARROW, "i32", "f32"]), SHAPE, LANES, SEED)
def test_lookup(source: str, out: str, shape: Any, lanes: int, seed: int) -> None:
    def make(net: Net, x: Value) -> Value:
        return net.b.lut(x, net.f32(256) if out == "f32" else net.integers(out, 256))

    run(make, (source, shape), seed=seed, lanes=lanes)


@pytest.mark.parametrize(("shape", "axis"), [((1, 2), 1), ((3, 70, 40), 2), ((2, 5, 3, 130), 3), ((1, 6, 4, 5), 1)])
@pytest.mark.parametrize("source", ["i8", "u8"])
@pytest.mark.parametrize("lanes", [20000, FULL])
def test_softmax_of_bytes(source: str, shape: tuple[int, ...], axis: int, lanes: int) -> None:
    def make(net: Net, x: Value) -> Value:
        powers = np.exp(net.rng.uniform(-8, 8, 256)).astype(np.float32)
        return net.b.lut_softmax(x, net.b.weight(powers, "powers"), axis=axis)

    run(make, (source, shape), seed=1, lanes=lanes)


@pytest.mark.parametrize(("shape", "axis"), [((1, 200, 40, 20), 3), ((9, 210, 64), 2)])
def test_softmax_of_bytes_in_tiles(shape: tuple[int, ...], axis: int) -> None:
    """Each tile loads what lies behind that of the one before."""

    def make(net: Net, x: Value) -> Value:
        powers = np.exp(net.rng.uniform(-8, 8, 256)).astype(np.float32)
        return net.b.lut_softmax(x, net.b.weight(powers, "powers"), axis=axis)

    op = run(make, ("i8", shape), lanes=12288)
    with local_memory(12288):
        kernel: Any = TARGET.kernel_for(op)
        assert len(list(boxes(kernel.grid(op), kernel.tiling(op)))) > 1


def test_more_tables_than_l2_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three are loaded together, the other two make them give way, and come again; all are right."""
    first = CHIP.l2_free[0]
    monkeypatch.setattr("bmcompiler.backends.bm1684.tables.CHIP", replace(CHIP, l2_free=(first, first + 3500)))
    net = Net([(3, 5, 7)], dtype="i8")
    tables = [net.integers("i8", 256) for _ in range(5)]
    values = [net.inputs[0]]
    for number in (0, 1, 0, 2, 3, 3, 0, 4, 1):
        values.append(net.b.lut(values[-1], tables[number]))
    module = net.module(values[1:])
    compiled = check(module, level=1)
    moves = Counter(row.commands for row in compiled.rows)
    assert moves == {4: 5, 3: 4}  # load, lookup, store, and tables unless they are there


_METHODS = ["equal", "less", "less_equal", "greater", "greater_equal"]


@property_test
@given(st.sampled_from(_METHODS), st.sampled_from(NARROW), SHAPE, PATTERN, LANES, SEED)
def test_comparison_and_choice(method: str, dtype: str, shape: Any, pattern: Any, lanes: int, seed: int) -> None:
    a, b = _broadcast(shape, pattern)

    def make(net: Net, x: Value, y: Value) -> Value:
        flags = net.b.compare(x, y, method=method)
        return net.b.where(net.b.bit_not(flags), x, y)

    run(make, (dtype, a), (dtype, b), seed=seed, lanes=lanes)
    run(lambda net, x, y: net.b.cast(net.b.compare(x, y, method=method), dtype="u8"), (dtype, a), (dtype, b))


@property_test
@given(st.sampled_from(["bit_and", "bit_or", "bit_xor", "bit_not"]), st.sampled_from(NARROW), SHAPE, PATTERN, SEED)
def test_bits(name: str, dtype: str, shape: Any, pattern: Any, seed: int) -> None:
    shapes = _broadcast(shape, pattern)[: 1 if name == "bit_not" else 2]
    run(lambda net, *values: getattr(net.b, name)(*values), *((dtype, s) for s in shapes), seed=seed)


@property_test
@given(st.sampled_from(NARROW), st.sampled_from([*NARROW, "i32", "f32"]), st.booleans(), SHAPE, LANES, SEED)
def test_conversion(source: str, target: str, truncate: bool, shape: Any, lanes: int, seed: int) -> None:
    run(lambda net, x: net.b.cast(x, dtype=target, truncate=truncate), (source, shape), seed=seed, lanes=lanes)


@pytest.mark.parametrize("name", ["max", "min", "bit_and"])
def test_flags(name: str) -> None:
    def make(net: Net, x: Value, y: Value) -> Value:
        flags = [net.b.compare(x, y, method=method) for method in ("less", "equal")]
        return net.b.cast(getattr(net.b, name)(*flags), dtype="i8")

    run(make, ("i8", (5, 3, 7)), ("i8", (5, 3, 7)))


def _commands(make: Any, *operands: tuple[str, tuple[int, ...]]) -> int:
    found = program(run(make, *operands))
    assert found is not None
    return len(found.steps)


FACTORS = {
    "i16": ((-128, 127), (-129, 129)),
    "u16": ((-128, 255), (-129, 257)),
    "i8": ((-32768, 65535), (-32769, 65537)),
}


@pytest.mark.parametrize("dtype", FACTORS)
def test_factors_reach_as_far_as_commands_hold(dtype: str) -> None:
    """Taken with the largest shift, too."""
    net, (taken, refused) = Net(((1, 70, 3, 5),), 0, dtype), FACTORS[dtype]
    for multiplier, shift in ((m, shift) for m in (*taken, *refused) for shift in (0, 31) if m % 2 or not shift):
        out = TensorType((1, 70, 3, 5), "i8")
        op = net.b.muls_shift(net.inputs[0], multiplier=multiplier, rshift=shift, out=out).op
        assert isinstance(op, MulsShift) and (program(op) is not None) == (multiplier in taken), multiplier


def test_what_the_quantizer_makes_takes_few_commands() -> None:
    shape, out = (4, 64, 4, 4), TensorType((4, 64, 4, 4), "i8")
    i8, i16 = ("i8", shape), ("i16", shape)
    assert _commands(lambda net, x: net.b.relu(x), i8) == 1
    assert _commands(lambda net, x: net.b.muls_shift(x, multiplier=127, rshift=9, out=out), i8) == 1
    assert _commands(lambda net, x: net.b.muls_shift(x, multiplier=300, rshift=7, out=out), i8) == 1
    assert _commands(lambda net, x: net.b.muls_shift(x, multiplier=301, rshift=7, out=out), i8) == 3
    assert _commands(lambda net, x: net.b.muls_shift(x, multiplier=101, rshift=15, out=out), i16) == 6
    assert _commands(lambda net, x, y: net.b.mac_shift(x, y, multipliers=(77, -101), rshift=7, out=out), i8, i8) == 3
    assert _commands(lambda net, x, y: net.b.mul_shift(x, y, rshift=7, out=out), i8, i8) == 1
    assert _commands(lambda net, x, y: net.b.add_shift(x, y, rshift=1, out=out), i8, i8) == 1


@pytest.mark.parametrize(
    ("make", "dtypes", "reason"),
    [
        (lambda net, x, y: net.b.mul_shift(x, y, rshift=16), ("i16", "i16"), "2**24"),
        (lambda net, x, y: net.b.add(x, y), ("i32", "i32"), "2**24"),
        (lambda net, x, y: net.b.maxs(x, value=0), ("i32", "i32"), "i8, u8, i16, u16 or bool"),
    ],
)
def test_what_is_not_exact_is_refused(make: Any, dtypes: tuple[str, str], reason: str) -> None:
    net = Net([])
    x, y = (net.b.input(f"x{i}", TensorType((2, 3), dtype)) for i, dtype in enumerate(dtypes))
    module = net.module([make(net, x, y)])
    told = unsupported_reason(TARGET, module.main.ops[0])
    assert told is not None and reason in told
    check(module, device=False)
