"""Queries, keys and values of one layer: which are split, with the same bits, and what the chip gains."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.analysis.profile import analysis_of
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.split_heads import SplitHeads
from bmcompiler.passmanager import PassContext
from bmcompiler.target import find_target
from bmcompiler.testing import check_op

TARGET = find_target("bm1684x")
WINDOWS, ROWS, HEADS, SIZE = 4, 49, 3, 32


def net(order: tuple[int, ...] = (2, 0, 3, 1, 4), dtype: str = "f32", also: bool = False, wide: bool = False) -> Module:
    """One product whose columns are queries, keys and values of several windows and heads."""
    b, rng = Builder.new("net"), np.random.default_rng(0)
    x = b.input("x", TensorType((WINDOWS * ROWS, 96), dtype))
    weight, bias = (rng.standard_normal(shape).astype(x.type.numpy) for shape in ((96, 288), (288,)))
    made = b.matmul(x, b.weight(weight, "w"), b.weight(bias, "b"))
    moved = b.permute(b.reshape(made, shape=(WINDOWS, ROWS, 3, HEADS, SIZE)), order=order)
    shape = moved.shape
    sources = [b.cast(moved, dtype="f32"), moved, moved] if wide else [moved] * 3
    parts = [
        b.slice(sources[i], starts=(i, 0, 0, 0, 0), ends=(i + 1, *shape[1:]), steps=(1,) * 5)
        for i in range(min(3, shape[0]))
    ]
    outs = [*parts, moved] if also else parts
    return b.outputs(outs, [f"y{i}" for i in range(len(outs))])


def ops(module: Module) -> list[str]:
    """The ops after the pass; outputs stay, bit for bit."""
    value = module.main.arguments[0]
    x = np.random.default_rng(1).standard_normal(value.shape).astype(value.type.numpy)
    before = run_module(module, {"x": x}, target=TARGET)
    SplitHeads().run(module, PassContext(target=TARGET))
    verify_module(module)
    for name, after in run_module(module, {"x": x}, target=TARGET).items():
        np.testing.assert_array_equal(before[name].view(np.uint8), after.view(np.uint8))
    return sorted(op.short_name for op in module.main.ops if op.short_name in ("matmul", "permute", "slice"))


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_each_is_a_product_of_its_own(dtype: str) -> None:
    assert ops(net(dtype=dtype)) == ["matmul"] * 3 + ["permute"] * 3


def test_types_change_behind_the_permute_of_each() -> None:
    """Quantization leaves queries of another type than keys."""
    assert ops(net(dtype="f16", wide=True)) == ["matmul"] * 3 + ["permute"] * 3


def test_others_stay() -> None:
    """Slices of windows take rows, and what is read whole has to be made."""
    for module in (net((0, 2, 3, 1, 4)), net(also=True)):
        assert ops(module) == ["matmul", "permute", *["slice"] * 3]


@pytest.mark.parametrize("dtype", ["f32", "f16", "int8"])
def test_heads_of_several_windows_are_cut_in_local_memory(dtype: str) -> None:
    """There and back: permutes through global memory took most of the time of such layers."""
    rng = np.random.default_rng(0)

    def make(b: Builder, x: Value) -> Value:
        weight = b.weight(rng.standard_normal((96, 288)).astype(np.float32) / 10, "w")
        made = b.reshape(b.matmul(x, weight), shape=(WINDOWS, ROWS, 3, HEADS, SIZE))
        moved = b.permute(made, order=(2, 0, 3, 1, 4))
        whole = (1, WINDOWS, HEADS, ROWS, SIZE)
        q, k, v = (
            b.reshape(b.slice(moved, starts=(i, 0, 0, 0, 0), ends=(i + 1, *whole[1:]), steps=(1,) * 5), shape=whole[1:])
            for i in range(3)
        )
        scores = b.softmax(b.matmul(q, b.permute(k, order=(0, 1, 3, 2))), axis=3)
        mixed = b.permute(b.matmul(scores, v), order=(0, 2, 1, 3))
        return b.reshape(mixed, shape=(WINDOWS * ROWS, 96))

    close = {"f32": 1e-4, "f16": 3e-2, "int8": 0.2}[dtype]
    done = check_op(make, [(WINDOWS * ROWS, 96)], target="bm1684x", quantize=dtype, seeds=1, close=close)
    analysis = analysis_of("bm1684x", done.result.model)
    assert analysis is not None
    timing = analysis.timing()
    moved = 4 * 2 * WINDOWS * ROWS * 96 * {"f32": 4, "f16": 2, "int8": 1}[dtype]  # bytes of four permutes, in and out
    taken = sum(layer.transfer for layer in timing.layers if layer.kind == "permute")
    assert taken <= moved / timing.bus_bytes_per_cycle
