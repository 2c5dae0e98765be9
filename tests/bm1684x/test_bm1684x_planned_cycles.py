"""The planner's cycles of a tile are those of the timing model for the commands that compute it, for every kernel.

Operands and results that come to lie in one bank of local memory take longer: where they lie is known only once a
program has been placed. What is in place, or reads one tensor twice, shares a bank wherever it lies, and is planned so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import test_bm1684x_halves as halves
import test_bm1684x_int8 as int8
import test_bm1684x_integers as integers
import test_bm1684x_kernels as kernels
from bm1684x_nets import BM1684X, FULL, Net
from cycle_nets import FLOATS
from hypothesis import given, settings
from hypothesis import strategies as st
from planned_cycles import Computation, check, computations, kernels_met, taken, tile_kernels
from test_bm1684x_column_copies import swapped
from test_bm1684x_computed_indices import INDEXED
from test_bm1684x_ordered_rows import ordered
from test_bm1684x_table_rows import lookup
from test_bm1684x_top_k import RANKED
from test_bm1684x_weight_only import packed_weights

import bmcompiler
from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.cycles import CycleTable
from bmcompiler.backends.bm1684x.kernels.forms import MatmulForms
from bmcompiler.backends.bm1684x.kernels.row_products import SingleMatmulKernel
from bmcompiler.backends.bm1684x.target import TARGET
from bmcompiler.backends.bm1684x.timing_profile import PROFILE
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.memory import MemoryPlan
from bmcompiler.ir import TensorType, Value
from bmcompiler.ops.builder import Builder


@pytest.mark.parametrize("name", FLOATS)
@given(
    shape=st.tuples(st.integers(1, 5), st.integers(2, 130), st.integers(3, 20), st.integers(3, 30)),
    lanes=st.sampled_from([FULL, FULL, 16384]),
    level=st.sampled_from([0, 2]),
)
@settings(max_examples=5, deadline=None)
def test_floats(name: str, shape: tuple[int, ...], lanes: int, level: int) -> None:
    net = Net([shape])
    module = net.module([FLOATS[name](net, net.inputs[0])])
    with BM1684X.local_memory(lanes), computations() as found:
        TARGET.compile([module], level)
    assert found or lanes != FULL  # a tile of cells needs more
    check(found)


@given(
    rows=st.integers(1, 40),
    depth=st.integers(2049, 9000),
    columns=st.integers(1, 300),
    kind=st.sampled_from(["constant", "activations", "transposed"]),
    lanes=st.sampled_from([FULL, FULL, 16384]),
    level=st.sampled_from([0, 2]),
)
@settings(max_examples=20, deadline=None)
def test_deep_products(rows: int, depth: int, columns: int, kind: str, lanes: int, level: int) -> None:
    """Rows of sections are loaded while others are multiplied: both, and what waits for what, are planned."""
    right = (columns, depth) if kind == "transposed" else (depth, columns)
    net = Net([(rows, depth)] + [right] * (kind != "constant"))
    operand = net.f32(*right) if kind == "constant" else net.inputs[1]
    made = net.b.matmul(net.inputs[0], operand, transpose_right=kind == "transposed", activation="relu")
    assert made.op is not None
    with BM1684X.local_memory(lanes), computations() as found:
        TARGET.compile([net.module([made])], level)
    check(found)
    forms = TARGET.kernel_for(made.op)
    by_rows = isinstance(forms, MatmulForms) and isinstance(forms.form(made.op), SingleMatmulKernel)
    assert lanes != FULL or by_rows or any(one.stream is not None for one in found)


@pytest.mark.parametrize("name", ["max", "add_shift", "mul_shift"])
def test_integers_that_are_read_twice(name: str) -> None:
    net = Net([(2, 70, 12, 20)], dtype="i8")
    given, shift = net.inputs[0], {} if name == "max" else {"rshift": 3}
    module = net.module([getattr(net.b, name)(given, given, **shift)])
    with computations() as found:
        TARGET.compile([module], 0)
    check(found)


def test_what_banks_cost_follows_from_where_a_program_puts_a_tile() -> None:
    """No op knows: one tile at two places."""
    net = Net([(1, 64, 28, 28)])
    made = net.b.add(net.inputs[0], net.f32(1, 64, 28, 28))
    module, bank = net.module([made]), CHIP.lmem_bank_size
    assert made.op is not None
    with computations() as found:
        for other in (bank // 2, bank):
            work = TARGET.kernel_for(made.op).whole(made.op)  # type: ignore[union-attr]
            work.compute(Build(CycleTable(PROFILE), MemoryPlan(), Coefficients(module)), [0, other], [2 * bank], [])
    beside, apart = (taken(one.commands, placed=True) for one in found)
    assert [one.planned for one in found] == [apart, apart]
    assert beside == 2 * apart


def test_registers_of_a_large_map_have_banks_of_their_own() -> None:
    """Of a small one they would keep more from other ops than they save."""
    each = {}
    for side in (12, 48):
        net = Net([(1, 64, side, side)])
        with computations() as found:
            TARGET.compile([net.module([net.b.swish(net.inputs[0])])], 2)
        each[side] = sum(taken(one.commands, placed=True) for one in found) / side**2
        assert side == 12 or each[side] * side**2 <= 1.1 * sum(one.planned for one in found)
    assert each[48] < 0.75 * each[12]


def test_tables_are_made_once_for_a_program() -> None:
    """No op knows whether it is the first that needs one."""
    net = Net([(1, 64, 28, 28)])
    x = net.inputs[0]
    with computations() as found:
        TARGET.compile([net.module([net.b.sigmoid(net.b.mul(net.b.sigmoid(x), x))])], 2)
    first, _, second = found
    assert first.planned == second.planned == taken(first.commands) == taken(second.commands)
    assert any(one.fills for one in first.commands) and not any(one.fills for one in second.commands)


# -- the nets of other tests, in every precision -----------------------------------------------------------------------
def compiled(make: Callable[..., Any], shapes: Sequence[tuple[int, ...]], quantize: str, dtype: str = "f32") -> Any:
    """A net, compiled; int8 in integers also where floats are quicker."""
    b, usual = Builder.new("net"), type(TARGET).pipeline
    inputs = [b.input(f"x{i}", TensorType(shape, dtype)) for i, shape in enumerate(shapes)]
    made = make(b, *inputs)
    values = [made] if isinstance(made, Value) else list(made)
    rng = np.random.default_rng(0)
    data = {f"x{i}": rng.standard_normal((2, *shape[1:]), np.float32) for i, shape in enumerate(shapes)}

    def pipeline(self: Any, precision: str, level: int) -> str:
        return usual(self, precision, level).replace("quantize{", "quantize{mode=channel,")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(TARGET), "pipeline", pipeline)
        module = b.outputs(values, [f"y{i}" for i in range(len(values))])
        return bmcompiler.compile_module(
            module, target="bm1684x", quantize=quantize, data=data if quantize == "int8" else None
        )


def built(make: Callable[..., Any]) -> Callable[..., Any]:
    """What makes a net of a builder, of what makes one of a `Net`."""
    return lambda b, *x: make(_Made(b), *x)


class _Made(Net):
    def __init__(self, b: Builder) -> None:
        self.b, self.rng = b, np.random.default_rng(0)


def _nets() -> Iterator[tuple[str, Callable[[], Any]]]:
    for name, floats in FLOATS.items():
        yield name, partial(compiled, built(floats), [(2, 70, 9, 11)], "f32")
    for name, (make, shape) in kernels.CONVOLUTIONS.items():
        yield f"f32 {name}", partial(compiled, built(make), [shape], "f32")
    for name, (make, shapes) in {**kernels.PRODUCTS, **kernels.OTHERS}.items():
        yield f"f32 {name}", partial(compiled, built(make), shapes, "f32")
    for name, (make, shapes, _) in int8.CASES.items():
        yield f"int8 {name}", partial(compiled, lambda b, *x, make=make: make(int8.Net(b), *x), shapes, "int8")
    for dtype in halves.DTYPES:
        yield f"{dtype} classifier", partial(compiled, halves.classifier, [(2, 1, 28, 28)], dtype)
        yield f"{dtype} block", partial(compiled, halves.mobile_block, [(1, 24, 14, 12)], dtype)
        yield f"{dtype} moves", partial(compiled, halves.moves, [(3, 12, 9, 7)], dtype)
        yield f"{dtype} packed weights", partial(compiled, packed_weights, [(1, 70, 97)], dtype)
        yield f"{dtype} heads", partial(compiled, _heads, [(1, 70, 96)], dtype)
        yield f"{dtype} columns", partial(compiled, partial(swapped, at=30), [(1, 70, 3, 50)], dtype)
        yield f"{dtype} recurrence", partial(compiled, built(_wide_steps), [(9, 64)], dtype)
        yield f"{dtype} steps by gate", partial(compiled, built(partial(_wide_steps, by_gate=True)), [(9, 64)], dtype)
        yield f"{dtype} attention", partial(compiled, halves.attention, [(1, 70, 48)], dtype)
    for name, (operands, attributes) in integers.SUMS.items():
        sums = partial(_sums, name, attributes)
        yield f"i8 {name}", partial(compiled, sums, [integers.SHAPE] * operands, "f32", "i8")
    for name, words in INTEGERS.items():
        yield f"i8 {name}", partial(compiled, built(words), [(2, 70, 9, 5)], "f32", "i8")
    yield "steps by gate", partial(compiled, built(partial(_wide_steps, by_gate=True)), [(9, 64)], "f32")
    yield "table", partial(compiled, _looked_up, [(2, 70, 9, 5)], "f32", "i8")
    yield "table rows", partial(bmcompiler.compile_module, lookup(np.ones((9, 5), np.float32), (70,)), target="bm1684x")
    rows = ordered(196, 96, (196,), "f16")
    yield "ordered rows", partial(bmcompiler.compile_module, rows, target="bm1684x", quantize="f32")
    yield "i32 rest", partial(compiled, lambda b, *x: b.mod(*x), [(2, 70, 9, 5)] * 2, "f32", "i32")
    yield "i32 sum", partial(compiled, lambda b, *x: b.add(*x, wrap=True), [(2, 70, 9, 5)] * 2, "f32", "i32")
    for name, make in {**INDEXED, **RANKED}.items():
        yield name, partial(bmcompiler.compile_module, make(), target="bm1684x")


def _heads(b: Builder, x: Value) -> Value:
    """Rows that see each other by three heads."""
    tokens = b.reshape(x, shape=[1, x.shape[1], 3, 32])
    heads = b.permute(tokens, order=[0, 2, 1, 3])
    return b.head_matmul(b.head_matmul(heads, tokens, transpose_right=True), tokens)


def _wide_steps(net: Net, x: Value, by_gate: bool = False) -> Value:
    """Of an LSTM whose weights are worth two bytes."""
    gates = net.b.reshape(net.b.matmul(x, net.f32(64, 1024)), shape=(9, 1, 1024))
    y, _, _ = net.b.recurrence(
        gates, net.f32(1024, 256), net.f32(1, 256), net.f32(1, 256), cell="lstm", by_gate=by_gate
    )
    return y


def _looked_up(b: Builder, x: Value) -> Value:
    return b.lut(x, b.weight(np.arange(256, dtype=np.int16), "t"))


def _sums(name: str, attributes: dict[str, Any], b: Builder, *x: Value) -> list[Value]:
    return [getattr(b, name)(*x, **attributes, out=integers.out(result)) for result in ("i8", "u8", "i16")]


INTEGERS: dict[str, Callable[[Net, Value], Value]] = {
    "add of words": lambda t, x: t.b.add(t.b.cast(x, dtype="i32"), t.integers("i32", *x.shape)),
    "dilated deconv": lambda t, x: t.b.deconv(
        x, t.integers("i8", x.shape[1], 5, 2, 2), strides=(2, 2), dilations=(2, 2), rshift=9
    ),
    "arith_shift": lambda t, x: t.b.arith_shift(x, t.integers("i8", *x.shape), direction="left"),
}
NETS = dict(_nets())


@cache
def met(name: str) -> tuple[list[Computation], set[type]]:
    """The tiles of a net, and the kernels of its ops."""
    with computations() as found:
        module = NETS[name]().module
    return found, kernels_met(TARGET, module)


@pytest.mark.parametrize("name", NETS)
def test_nets_of_other_tests(name: str) -> None:
    check(met(name)[0])


def test_no_kernel_is_left_out() -> None:
    found = set[type]().union(*(met(name)[1] for name in NETS))
    for make in FLOATS.values():  # as they are: passes make other ops of some
        net = Net([(2, 70, 9, 11)])
        found |= kernels_met(TARGET, net.module([make(net, net.inputs[0])]))
    row = Net([(1, 2100)])  # commands of matrices have one
    found |= kernels_met(TARGET, row.module([row.b.matmul(row.inputs[0], row.f32(2100, 1100))]))
    assert tile_kernels(TARGET) <= found
