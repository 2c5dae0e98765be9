"""Every TensorOp inside a float net: int8 where that exists, else on the CPU; the model runs as `evaluate` says."""

from __future__ import annotations

import numpy as np
import pytest
from op_samples import SAMPLES

from bmcompiler.bmodel.bm1880 import read
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ops import load_all
from bmcompiler.ops.builder import Builder
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.runtime import Session
from bmcompiler.target import Compiled, find_target

WITHOUT_FLOATS = ("weight", "customized", "quantize", "dequantize")


def net_around(name: str) -> Module:
    """The sample of an op behind relu layers and before further ones, as far as its operands and results are floats.

    Operands of another batch size than the first are constants.
    """
    types, make = SAMPLES[name]
    builder, rng = Builder.new("net"), np.random.default_rng(7)
    inputs: list[Value] = []
    for i, type in enumerate(types):
        if type.shape[0] != types[0].shape[0]:
            inputs.append(builder.weight(random_array(rng, type), f"w{i}"))
            continue
        x = builder.input(f"x{i}", type)
        with builder.at(f"before{i}"):
            inputs.append(builder.relu(x) if type.dtype == "f32" else x)
    with builder.at("the op"):
        made = make(builder, *inputs)
    outputs = []
    for i, value in enumerate(made if isinstance(made, tuple) else (made,)):
        with builder.at(f"after{i}"):
            outputs.append(builder.sigmoid(value) if value.dtype == "f32" else value)
    module = builder.outputs(outputs, [f"y{i}" for i in range(len(outputs))])
    verify_module(module)
    return module


def random_array(rng: np.random.Generator, type: TensorType, low: float = 0.1) -> np.ndarray:
    """Floats in low .. low + 0.8, small integers, bool."""
    if type.is_float:
        return rng.uniform(low, low + 0.8, type.shape).astype(type.numpy)
    if type.dtype == "bool":
        return rng.integers(0, 2, type.shape).astype(bool)
    return rng.integers(-2 if type.numpy.kind == "i" else 0, 3, type.shape).astype(type.numpy)


@pytest.mark.parametrize("name", sorted(set(SAMPLES) & set(load_all()) - set(WITHOUT_FLOATS)))
def test_the_op_compiles_and_runs_as_the_interpreter_says(name: str) -> None:
    module, rng = net_around(name), np.random.default_rng(3)
    low = 1.1 if name == "acosh" else 0.1
    named = list(zip(module.main.input_names, module.main.arguments))
    data = {key: np.concatenate([random_array(rng, v.type, low) for _ in range(4)]) for key, v in named}
    compare(module, data, low)


CHIPS = ("bm1880", "bm1684", "bm1684x", "dv700")
MODES = [(chip, precision) for chip in CHIPS for precision in find_target(chip).precisions]


@pytest.mark.parametrize("chip, precision", MODES)
def test_ops_of_several_results_pass_the_passes_of_all_precisions(chip: str, precision: str) -> None:
    """No rule asks such an op for its only result, whatever it may be counted among; LSTMs with products are there."""
    target, asked = find_target(chip), set()
    for name in sorted(set(SAMPLES) & set(load_all()) - set(WITHOUT_FLOATS)):
        module, rng = net_around(name), np.random.default_rng(3)
        several = [op for op in module.main.ops if len(op.results) > 1]
        if not several:
            continue
        named = list(zip(module.main.input_names, module.main.arguments))
        data = {key: np.concatenate([random_array(rng, v.type) for _ in range(2)]) for key, v in named}
        run_pipeline(module, target.pipeline(precision, 2), PassContext(data=data, target=target))
        target.compile([module], 2)
        asked |= {op.short_name for op in several}
    assert asked >= {"split", "top_k", "lstm"}


def compare(module: Module, data: dict[str, np.ndarray], low: float = 0.1) -> Compiled:
    """Quantize, compile, write, read, run, and compare with the interpreter."""
    target, rng = find_target("bm1880"), np.random.default_rng(4)
    run_pipeline(module, target.pipeline("int8", 2), PassContext(data=data, target=target), verify_each=True)
    compiled = target.compile([module], 2)
    model = read(memoryview(b"".join(compiled.model.parts())), "test.bmodel")
    named = zip(module.main.input_names, module.main.arguments)
    feeds = {key: random_array(rng, v.type, low) for key, v in named}
    want, got = run_module(module, feeds), Session(model).run(feeds, raw=True)
    assert list(got) == list(want)
    for key, array in want.items():
        np.testing.assert_array_equal(got[key], array.reshape(array.shape or (1,)), err_msg=key)
    return compiled


def test_bool_and_wide_integers_pass_device_layers() -> None:
    """A condition and indices made on the CPU are read on the CPU again, behind layers of the chip."""
    rng = np.random.default_rng(5)
    builder = Builder.new("net")
    x = builder.input("x", TensorType((1, 4, 6, 6)))
    kernel = builder.weight(rng.normal(size=(4, 4, 1, 1)).astype(np.float32), "k")
    with builder.at("first"):
        first = builder.conv(x, kernel)
    with builder.at("positive"):
        positive = builder.compare(first, builder.weight(np.zeros((), np.float32), "zero"), method="greater")
    with builder.at("best"):
        _, best = builder.top_k(first, k=3, axis=3)
    with builder.at("chosen"):
        chosen = builder.where(positive, first, x)
    with builder.at("second"):
        second = builder.conv(chosen, kernel)
    with builder.at("again"):
        again = builder.where(positive, second, x)
    with builder.at("picked"):
        picked = builder.gather_elements(again, best, axis=3)
    outputs = [picked, best, positive]
    module = builder.outputs(outputs, ["picked", "best", "positive"])
    compiled = compare(module, {"x": random_array(rng, TensorType((4, 4, 6, 6)))})
    assert {row.kind: row.where for row in compiled.rows}["conv"] == "bm1880"
    assert [value.dtype for value in module.main.returned] == ["f32", "i32", "u8"]
