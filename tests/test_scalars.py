"""Tensors of no axes: numpy computes numbers out of such arrays, which know neither `out=` nor assignment."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from corpus.cases import MODES
from onnx import helper, numpy_helper

import bmcompiler
from bmcompiler.backends.bm1684x.half_arithmetic import HalfArithmetic
from bmcompiler.numeric import arith, factors, fp32, narrowing, quant_modes, special
from bmcompiler.numeric.halves import BF16, FP16
from bmcompiler.numeric.rounding import Rounding

_REALS = np.asarray([0, -0.0, 1e-40, -3e-6, 0.4999, -2.5, 300.7, 1e9, -np.inf, np.nan], np.float32)


def _rescaled(x: Any, factor: float) -> Any:
    return factors.requantize_real(x.view(np.int32), np.float32(factor), np.zeros((), np.float32), "i8")


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "from_real": lambda x: quant_modes.from_real(x * np.float32(0.3), "i8", 3),
    "quantize_even": lambda x: quant_modes.quantize_even(x, 0.1, "u8", 3),
    "quantize_away": lambda x: quant_modes.quantize_away(x, 0.1, "i16"),
    "quantize_real": lambda x: arith.quantize_real(np.nan_to_num(x), 4.0),
    "requantize_real": partial(_rescaled, factor=1e-7),
    "requantize_real of a denormal factor": partial(_rescaled, factor=1e-39),
    "to_int": fp32.to_int,
    "bf16 bits": BF16.narrow,
    "fp16 bits": FP16.narrow,
    **{f"to_bf16, {mode.name}": partial(narrowing.to_bf16, mode=mode) for mode in Rounding},
    **{f"to_fp16, {mode.name}": partial(narrowing.to_fp16, mode=mode) for mode in Rounding},
    **{each.__name__: each for each in (fp32.flush, fp32.rsqrt, special.erf)},
    **{each.__name__: partial(each, np.float32(1.5)) for each in (fp32.add, fp32.multiply, fp32.divide, fp32.minimum)},
}
for _name in ("f16", "bf16"):
    _half = HalfArithmetic(_name)
    _FUNCTIONS |= {f"BM1684X {_name}, {each.__name__}": each for each in (_half.cast_from, _half.narrow)}
    for _each in (_half.add, _half.multiply, _half.maximum):
        _FUNCTIONS[f"BM1684X {_name}, {_each.__name__}"] = lambda x, h=_half, e=_each: e(h.narrow(x), h.narrow(x))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_a_function_of_elements_gives_of_one_without_axes_what_it_gives_of_many(name: str) -> None:
    function = _FUNCTIONS[name]
    found = [np.asarray(function(np.asarray(x))) for x in _REALS]
    assert {x.shape for x in found} == {()}
    np.testing.assert_array_equal(np.stack(found).astype(np.float64), function(_REALS.copy()).astype(np.float64))


def _net(path: Path) -> Path:
    """The largest element of x, alone and with others; the logarithm stays f32 in a net of f16."""
    node, ops = helper.make_node, ("Sigmoid", "Neg", "Exp", "Floor", "Relu")
    nodes = [
        node("Add", ["x", "tiny"], ["sum"]),
        node("Log", ["sum"], ["log"]),
        node("ReduceMax", ["log"], ["most"], keepdims=0),
        node("Sub", ["most", "range"], ["least"]),
        node("Max", ["log", "least"], ["clipped"]),
        *(node(op, ["least"], [op]) for op in ops),
        node("Mul", ["clipped", "Sigmoid"], ["scaled"]),
    ]
    constants = {"tiny": 1e-10, "range": 3.0}
    initializers = [numpy_helper.from_array(np.float32(value), name) for name, value in constants.items()]
    inputs = [helper.make_tensor_value_info("x", 1, [1, 24])]
    outputs = [helper.make_tensor_value_info(name, 1, None) for name in ("least", "scaled", *ops)]
    graph = helper.make_graph(nodes, "scalars", inputs, outputs, initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.mark.parametrize(("chip", "precision"), MODES)
def test_a_net_with_tensors_of_no_axes_gives_in_every_mode_what_it_means(
    chip: str, precision: str, tmp_path: Path
) -> None:
    data = np.random.default_rng(1).uniform(0.01, 9, (8, 24)).astype(np.float32)
    given = {"data": {"x": data}} if precision == "int8" else {}
    for level in (0, 2):
        result = bmcompiler.compile(
            _net(tmp_path / "net.onnx"),
            target=chip,
            quantize=precision,
            opt=level,
            check=2,
            log=lambda _: None,
            **given,
        )
        found = result.run({"x": data[:1]})
        least = np.log(data[0]).max() - 3
        np.testing.assert_allclose(found["least"], least, atol=0.1)
        np.testing.assert_allclose(
            found["scaled"].reshape(-1), np.maximum(np.log(data[0]), least) / (1 + np.exp(-least)), atol=0.1
        )
