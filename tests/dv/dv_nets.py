"""Small nets on the DV700: built by a function, compiled, and run on the device against `evaluate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.backends.dv.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.runtime import Session
from bmcompiler.target import Compiled

Arrays = dict[str, np.ndarray]
Build = Callable[..., Any]


def weights(b: Builder, *shape: int, seed: int = 0) -> Value:
    return b.weight(np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32))


def net(build: Build, *shapes: tuple[int, ...]) -> Module:
    """`build(builder, *inputs)` gives the output or a tuple of them."""
    b = Builder.new("net")
    inputs = [b.input(f"x{i}", TensorType(shape, "f32")) for i, shape in enumerate(shapes)]
    made = build(b, *inputs)
    values = list(made) if isinstance(made, tuple) else [made]
    module = b.outputs(values, [f"y{i}" for i in range(len(values))])
    verify_module(module)
    return module


def lowered(module: Module, precision: str = "f16") -> Module:
    """The module after the target's own passes."""
    run_pipeline(module, TARGET.pipeline(precision, 2), PassContext(target=TARGET))
    verify_module(module)
    return module


def random_inputs(module: Module, seed: int = 1) -> Arrays:
    random = np.random.default_rng(seed)
    pairs = zip(module.main.input_names, module.main.arguments)
    return {name: random.standard_normal(value.shape).astype(np.float32) for name, value in pairs}


def run_on_device(module: Module, made: Compiled, inputs: Arrays) -> Arrays:
    """The outputs, after they were found to have the bits of `evaluate`."""
    found = Session(made.model).run(inputs, raw=True)
    for name, expected in run_module(module, inputs, target=TARGET).items():
        assert found[name].tobytes() == expected.tobytes(), f"output {name} differs"
    return found
