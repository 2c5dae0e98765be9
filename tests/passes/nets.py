"""Small nets for pass tests: a builder with random weights, and the comparison of a net before and after a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.builder import Builder
from bmcompiler.passmanager import run_pipeline


class Net:
    """Ops by name on values; every op is its own source layer "NAMEn" and its value the tensor "NAMEn.out"."""

    def __init__(self, seed: int = 0) -> None:
        self.b = Builder.new("net")
        self.random = np.random.default_rng(seed)
        self.count = 0

    def input(self, *shape: int, dtype: str = "f32", name: str = "data") -> Value:
        return self.b.input(name, TensorType(shape, dtype))

    def w(self, *shape: int, low: float = -1.0, high: float = 1.0) -> Value:
        """A random constant."""
        return self.constant(self.random.uniform(low, high, shape))

    def fill(self, value: float, *shape: int) -> Value:
        return self.constant(np.full(shape, value))

    def constant(self, array: Any, dtype: Any = "float32") -> Value:
        self.count += 1
        return self.b.weight(np.asarray(array, dtype), f"w{self.count}")

    def __getattr__(self, op: str) -> Any:
        def build(*operands: Value, **attributes: Any) -> Any:
            self.count += 1
            with self.b.at(f"{op}{self.count}"):
                results = getattr(self.b, op)(*operands, **attributes)
            if isinstance(results, Value) and isinstance(results.op, TensorOp):
                results.op.attributes["source.tensor"] = f"{op}{self.count}.out"
            return results

        return build

    def done(self, *outputs: Value) -> Module:
        module = self.b.outputs(outputs, [f"out{i}" for i in range(len(outputs))])
        verify_module(module)
        return module


def random_inputs(module: Module, seed: int = 1) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    inputs = {}
    for name, value in zip(module.main.input_names, module.main.arguments):
        if value.type.is_float:
            inputs[name] = random.normal(0, 2, value.shape).astype(value.type.numpy)
        else:
            limits = np.iinfo(value.type.numpy)
            inputs[name] = random.integers(limits.min, limits.max, value.shape, value.type.numpy, endpoint=True)
    return inputs


def assert_close(got: dict[str, np.ndarray], want: dict[str, np.ndarray], tolerance: float = 1e-4) -> None:
    """Equal integers; floats within `tolerance` of the largest magnitude of the output."""
    assert list(got) == list(want)
    for name, array in want.items():
        assert got[name].shape == array.shape and got[name].dtype == array.dtype
        if array.dtype.kind != "f":
            np.testing.assert_array_equal(got[name], array)
        else:
            np.testing.assert_allclose(got[name], array, rtol=0, atol=tolerance * max(1e-6, np.abs(array).max()))


def apply(module: Module, pipeline: str) -> bool:
    """Run a pipeline: the outputs stay, a second run changes nothing, and `modified` tells the truth."""
    inputs = random_inputs(module)
    before, text = run_module(module, inputs), str(module)
    modified = run_pipeline(module, pipeline, verify_each=True)
    assert modified == (str(module) != text) or "dead-code" in pipeline
    assert_close(run_module(module, inputs), before)
    settled = str(module)
    assert not run_pipeline(module, pipeline) and str(module) == settled
    return modified


def names(module: Module) -> list[str]:
    """Op names in order, weights and return left out."""
    return [op.short_name for op in module.main.ops if op.short_name not in ("weight", "return")]
