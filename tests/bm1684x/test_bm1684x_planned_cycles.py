"""The planner's cycles of a tile are those of the timing model for the commands that compute it, for every kernel.

Operands and results that come to lie in one bank of local memory take longer: where they lie is known only once a
program has been placed. What is in place, or reads one tensor twice, shares a bank wherever it lies, and is planned so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any

import numpy as np
import pytest
import test_bm1684x_halves as halves
import test_bm1684x_int8 as int8
import test_bm1684x_integers as integers
import test_bm1684x_kernels as kernels
from bm1684x_nets import BM1684X, FULL, Net
from hypothesis import given, settings
from hypothesis import strategies as st
from planned_cycles import Computation, check, computations
from test_bm1684x_table_rows import lookup

import bmcompiler
from bmcompiler.backends.bm1684x.target import TARGET
from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.codegen.kernels import LocalKernel
from bmcompiler.ir import TensorType, Value
from bmcompiler.ops.builder import Builder

FLOATS: dict[str, Callable[[Net, Value], Value]] = {
    "stride 1": lambda t, x: t.b.conv(x, t.f32(70, x.shape[1], 3, 3), t.f32(70), pads=(1, 1, 1, 1), activation="relu6"),
    "strided": lambda t, x: t.b.conv(x, t.f32(70, x.shape[1], 3, 2), pads=(1, 1, 1, 1), strides=(2, 2)),
    "depthwise": lambda t, x: t.b.conv(x, t.f32(x.shape[1], 1, 3, 3), pads=(1, 1, 1, 1), group=x.shape[1]),
    "deconv": lambda t, x: t.b.deconv(x, t.f32(x.shape[1], 5, 3, 3), strides=(2, 2)),
    "max_pool": lambda t, x: t.b.max_pool(x, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
    "avg_pool": lambda t, x: t.b.avg_pool(x, kernel=(2, 3), strides=(1, 2), pads=(0, 1, 0, 1)),
    "add": lambda t, x: t.b.add(x, t.f32(*x.shape), activation="relu"),
    "square": lambda t, x: t.b.mul(x, x),
    "div": lambda t, x: t.b.div(x, t.f32(1, x.shape[1], 1, 1)),
    "pow": lambda t, x: t.b.pow(x, t.f32(*x.shape)),
    "sqrt": lambda t, x: t.b.sqrt(x),
    "sigmoid": lambda t, x: t.b.sigmoid(x),
    "gelu": lambda t, x: t.b.gelu(x),
    "sin": lambda t, x: t.b.sin(x),
    "softmax": lambda t, x: t.b.softmax(x, axis=1),
    "softmax of rows": lambda t, x: t.b.softmax(x, axis=3),
    "reduce": lambda t, x: t.b.reduce(x, axes=(2, 3), method="mean"),
    "cumulate": lambda t, x: t.b.cumulate(x, axis=2, method="sum"),
    "lrn": lambda t, x: t.b.lrn(x, size=3),
    "concat": lambda t, x: t.b.relu(t.b.concat(t.b.sqrt(x), t.b.relu(x), axis=1)),
    "pad": lambda t, x: t.b.relu(t.b.pad(t.b.sqrt(x), pads=(0, 0, 0, 9, 0, 0, 0, 0), value=2.0)),
    "upsample": lambda t, x: t.b.sqrt(t.b.upsample(t.b.relu(x), scale=(2, 3))),
    "resize": lambda t, x: t.b.resize(
        x, sizes=(*x.shape[:2], 2 * x.shape[2], 3 * x.shape[3]), scales=(1.0, 1.0, 2.0, 3.0), mode="linear"
    ),
    "matmul": lambda t, x: t.b.matmul(x, t.f32(x.shape[-1], 70), t.f32(70), activation="relu"),
    "compare": lambda t, x: t.b.where(t.b.compare(x, t.f32(*x.shape), method="greater"), x, t.f32(*x.shape)),
}


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


# -- the nets of other tests, in every precision -----------------------------------------------------------------------
def compiled(make: Callable[..., Any], shapes: Sequence[tuple[int, ...]], quantize: str, dtype: str = "f32") -> None:
    """Compile a net; int8 in integers also where floats are quicker."""
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
        bmcompiler.compile_module(
            module, target="bm1684x", quantize=quantize, data=data if quantize == "int8" else None
        )


def built(make: Callable[..., Any]) -> Callable[..., Any]:
    """What makes a net of a builder, of what makes one of a `Net`."""
    return lambda b, *x: make(_Made(b), *x)


class _Made(Net):
    def __init__(self, b: Builder) -> None:
        self.b, self.rng = b, np.random.default_rng(0)


def _nets() -> Iterator[tuple[str, Callable[[], None]]]:
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
        yield f"{dtype} attention", partial(compiled, halves.attention, [(1, 70, 48)], dtype)
    for name, (operands, attributes) in integers.SUMS.items():
        sums = partial(_sums, name, attributes)
        yield f"i8 {name}", partial(compiled, sums, [integers.SHAPE] * operands, "f32", "i8")
    yield "table", partial(compiled, _looked_up, [(2, 70, 9, 5)], "f32", "i8")
    yield "table rows", partial(bmcompiler.compile_module, lookup(np.ones((9, 5), np.float32), (70,)), target="bm1684x")


def _looked_up(b: Builder, x: Value) -> Value:
    return b.lut(x, b.weight(np.arange(256, dtype=np.int16), "t"))


def _sums(name: str, attributes: dict[str, Any], b: Builder, *x: Value) -> list[Value]:
    return [getattr(b, name)(*x, **attributes, out=integers.out(result)) for result in ("i8", "u8", "i16")]


NETS = dict(_nets())


@cache
def tiles(name: str) -> list[Computation]:
    with computations() as found:
        NETS[name]()
    return found


@pytest.mark.parametrize("name", NETS)
def test_nets_of_other_tests(name: str) -> None:
    check(tiles(name))


def test_no_kernel_is_left_out() -> None:
    forms = [kind.forms if isinstance(kind, FormsKernel) else (kind,) for kind in TARGET.kernels()]
    wanted = {type(kind).work.__qualname__ for kind in chain(*forms) if isinstance(kind, LocalKernel)}
    found = {one.kernel.split(".")[0] for name in NETS for one in tiles(name)}
    assert {name.split(".")[0] for name in wanted} <= found
