"""Decompositions of integers: what they draft gives the same bits, in every mode, and others stay away."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bmcompiler.interpreter import evaluate_op
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops import find_op
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.core import Weight
from bmcompiler.passes.support.decompositions import decompositions_of
from bmcompiler.passes.support.decompositions.base import Draft

MODES: dict[str, dict[str, Any]] = {
    "shift": {"rshift": 6},
    "low": {"mode": "low", "scale": 0.0123},
    "high": {"mode": "high", "scale": 0.0123},
    "asymmetric": {"mode": "asymmetric", "scale": 0.0123, "zero_points": (3, -4, 7)},
}
CONVS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "padded_before": ((2, 4, 6, 5), {"pads": (3, 1, 0, 5), "strides": (2, 1)}),
    "space_to_channels": ((1, 4, 8, 9), {"pads": (1, 0, 2, 1), "strides": (3, 4)}),
    "taps_that_see_the_input": ((1, 4, 5, 12), {"pads": (8, 0, 1, 0), "dilations": (8, 1)}),
    "zeros_between_taps": ((1, 4, 30, 12), {"pads": (10, 12, 3, 0), "dilations": (18, 1)}),
    "dilation_to_batch": ((1, 4, 9, 12), {"pads": (2, 1, 3, 0), "dilations": (2, 4)}),
}
MATRICES: dict[str, tuple[tuple[int, ...], tuple[int, ...], str, dict[str, Any]]] = {
    "constant_left": ((5, 7), (7, 3), "left", {}),
    "transposed_before": ((7, 5), (7, 3), "", {"transpose_left": True}),
    "equal_batches": ((2, 5, 7), (1, 7, 3), "", {}),
    "constant_batches": ((2, 5, 7), (2, 7, 3), "right", {}),
}
POOLS: dict[str, dict[str, Any]] = {
    "strided_window_of_one": {"kernel": (1, 1), "strides": (2, 3)},
    "rows_then_columns": {"kernel": (3, 2), "pads": (1, 1, 0, 1), "strides": (2, 1)},
    "maximum_of_taps": {"kernel": (1, 3), "dilations": (1, 2), "pads": (0, 0, 1, 1)},
    "padded_before": {"kernel": (3, 3), "pads": (2, 1, 0, 2)},
    "windows_of_windows": {"kernel": (6, 1), "strides": (6, 1)},
}


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def check(op: TensorOp, module: Module, arrays: dict[Value, np.ndarray]) -> set[str]:
    """What each decomposition drafts for an op gives the bits of the op; the names of those that drafted."""
    given = [arrays[value] for value in op.operands]
    want = evaluate_op(op, given)[0]
    names = set()
    for rule in decompositions_of(op):
        draft, known = Draft(module, op, rule.__name__), dict(arrays)
        value = rule(op, draft)
        if value is None:
            continue
        for new in draft.ops:
            if isinstance(new, Weight):
                known[new.result] = module.weights[new.key]
            else:
                known |= zip(new.results, evaluate_op(new, [known[each] for each in new.operands]))
        np.testing.assert_array_equal(known[value], want, rule.__name__)
        assert (known[value].dtype, value.type) == (want.dtype, op.type)
        names.add(rule.__name__)
    return names


def built(name: str, shapes: dict[tuple[int, ...], bool], result: str = "", **attributes: Any) -> set[str]:
    """`check` of an op on random bytes; the shapes of its operands, and which are constants."""
    builder, arrays, operands = Builder.new("net"), {}, []
    for index, (shape, constant) in enumerate(shapes.items()):
        array = numbers(*shape, seed=index)
        made = builder.weight(array, "w") if constant else builder.input(f"x{index}", TensorType(shape, "i8"))
        arrays[made] = array
        operands.append(made)
    op = find_op(name)(operands, attributes, None, ("layer",))
    if result:
        op.result.type = TensorType(op.result.shape, result)
    builder.append(op)
    op.check()
    return check(op, builder.module, arrays)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CONVS)
def test_convolutions(name: str, mode: str) -> None:
    shape, attributes = CONVS[name]
    result = "i8" if mode in ("shift", "low") else "u16"
    found = built("conv", {shape: False, (6, shape[1], 2, 3): True}, result, **attributes, **MODES[mode])
    assert (name in found) == (mode != "asymmetric" or name in ("padded_before", "dilation_to_batch"))


@pytest.mark.parametrize("mode", ["shift", "low", "high"])
def test_deconvolutions(mode: str) -> None:
    shapes = {(2, 4, 3, 5): False, (4, 6, 1, 2): True}
    found = built("deconv", shapes, "i8", strides=(3, 4), pads=(1, 0, 0, 2), output_pads=(1, 0), **MODES[mode])
    alike = {"kernel_as_large_as_its_step", "results_beyond_the_input"}
    assert found == alike | ({"bytes_summed_in_float"} if mode != "shift" else set())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", MATRICES)
def test_matrix_products(name: str, mode: str) -> None:
    left, right, constant, attributes = MATRICES[name]
    result = "i8" if mode in ("shift", "low") else "i16"
    shapes = {left: constant == "left", right: constant == "right"}
    found = built("matmul", shapes, result, **attributes, **MODES[mode])
    assert (name in found) == (mode != "asymmetric" or name != "constant_left")


@pytest.mark.parametrize("mode", ["low", "high", "asymmetric"])
@pytest.mark.parametrize("right", [(7, 3), (2, 700, 3)])
@pytest.mark.parametrize("constant", [False, True])
def test_products_of_computed_bytes_and_of_batches_are_summed_in_float(
    right: tuple[int, ...], constant: bool, mode: str
) -> None:
    """Not in the asymmetric mode, which has a constant matrix."""
    shapes = {(2, 5, right[-2]): False, right: constant}
    found = built("matmul", shapes, "i8", **MODES[mode])
    assert ("bytes_summed_in_float" in found) == (mode != "asymmetric" or (constant and len(right) == 2))


@pytest.mark.parametrize("name", POOLS)
def test_largest_of_windows(name: str) -> None:
    assert name in built("max_pool", {(1, 3, 12, 7): False}, **POOLS[name])


@pytest.mark.parametrize("name", POOLS)
def test_means_are_rounded_once(name: str) -> None:
    if name != "maximum_of_taps":
        assert not built("avg_pool", {(1, 3, 12, 7): False}, scale=0.25, count_include_pad=True, **POOLS[name])


def test_products_and_biases() -> None:
    assert "factor_per_row" in built("mul", {(2, 3, 4, 5): False, (2, 3, 1, 1): False}, "u16")
    assert not built("reduce", {(2, 3, 4): False}, axes=(1,), method="sum")
