"""Small random nets, and the comparison that tests of lane chips share: model -> device == interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import planned_cycles
import pytest

from bmcompiler.backends.lanes.target import LaneTarget
from bmcompiler.bmodel.bm168x import Bm168xModel
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Quant, TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime.bm168x_device import Bm168xDevice
from bmcompiler.target import Compiled

Shape = tuple[int, ...]
Make = Callable[..., "Value | Sequence[Value]"]
FULL = 0
"""All bytes that lanes have."""
QUANT = Quant(1 / 64)


class Net:
    """A net under construction with reproducible random weights; integer inputs have a scale of 1/64."""

    def __init__(self, shapes: Sequence[Shape], seed: int = 0, dtype: str = "f32") -> None:
        self.rng = np.random.default_rng(seed)
        self.b = Builder.new("net")
        quant = None if dtype == "f32" else QUANT
        self.inputs = [self.b.input(f"x{i}", TensorType(shape, dtype, quant)) for i, shape in enumerate(shapes)]

    def f32(self, *shape: int) -> Value:
        """A random float constant."""
        return self.b.weight(self.rng.standard_normal(shape).astype(np.float32), "w")

    def integers(self, dtype: str, *shape: int) -> Value:
        """A random constant over the full range of an integer type ("i8", "u8", "i16", ...)."""
        limits = np.iinfo(TensorType((), dtype).numpy)
        return self.b.weight(self.rng.integers(limits.min, limits.max + 1, shape).astype(limits.dtype), "w")

    def module(self, values: Sequence[Value]) -> Module:
        """The finished net with outputs y0, y1, ..."""
        module = self.b.outputs(list(values), [f"y{i}" for i in range(len(values))])
        verify_module(module)
        return module


def random_inputs(module: Module, seed: int = 1) -> dict[str, np.ndarray]:
    """Normal floats, and integers over their full range."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, argument in zip(module.main.input_names, module.main.arguments):
        if argument.type.is_float:
            found[name] = rng.standard_normal(argument.shape).astype(np.float32)
        else:
            limits = np.iinfo(argument.type.numpy)
            found[name] = rng.integers(limits.min, limits.max + 1, argument.shape).astype(limits.dtype)
    return found


def with_extremes(inputs: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """Integer inputs of which a third of the elements are the lowest, the highest, or next to 0."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, array in inputs.items():
        if array.dtype.kind in "iu":
            limits = np.iinfo(array.dtype)
            rare = np.array([limits.min, limits.max, limits.min + 1, limits.max - 1, 0, 1], array.dtype)
            array = np.where(rng.random(array.shape) < 1 / 3, rng.choice(rare, array.shape), array)
        found[name] = array
    return found


@dataclass(frozen=True)
class LaneChecks:
    """A chip, and what is checked on it."""

    target: LaneTarget[Any]
    device: type[Bm168xDevice]

    def planner(self, profile: Any) -> LaneChecks:
        """The same with plans by a profile of the timing model."""
        return replace(self, target=self.target.planner(profile))

    @contextmanager
    def local_memory(self, lane_bytes: int) -> Iterator[None]:
        """Local memory as if it had fewer bytes per lane, so that small tensors are cut into many tiles.

        `FULL`: as it is.
        """
        tiler = self.target.machine.tiler
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tiler, "lane_bytes", lane_bytes or tiler.lane_bytes)
            yield

    def on_device(self, compiled: Compiled, module: Module, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs of the first stage on the simulated chip, device values in and out."""
        model = compiled.model
        assert isinstance(model, Bm168xModel)
        program = self.device().load(model)[0]
        results = program.run([inputs[name] for name in module.main.input_names])
        return dict(zip(module.main.output_names, results))

    def check(
        self,
        module: Module,
        seed: int = 1,
        *,
        level: int = 2,
        device: bool = True,
        inputs: dict[str, np.ndarray] | None = None,
    ) -> Compiled:
        """Compile, which also looks for races (race_watch.py), run and compare bit for bit.

        Tiles take the cycles that they were planned for. With `device` nothing may have gone to the CPU.
        """
        inputs = inputs or random_inputs(module, seed)
        with planned_cycles.computations() as tiles:
            compiled = self.target.compile([module], level)
        planned_cycles.check(tiles, self.target.profile)
        if device:
            assert [row.reason for row in compiled.rows if row.where == "cpu"] == []
        got, want = self.on_device(compiled, module, inputs), run_module(module, inputs, target=self.target)
        for name, expected in want.items():
            assert got[name].dtype == expected.dtype
            np.testing.assert_array_equal(got[name].view(np.uint8), np.ascontiguousarray(expected).view(np.uint8), name)
        return compiled

    def check_op(
        self,
        make: Make,
        *shapes: Shape,
        dtype: str = "f32",
        seed: int = 0,
        lanes: int = FULL,
        level: int = 2,
        close: float = 1e-4,
    ) -> None:
        """Check a net of one op (`make(net, *inputs)`) in lanes of `lanes` bytes; floats also against the op's meaning.

        Args: close: allowed difference to the op's own `evaluate`, relative to its largest value.
        """
        net = Net(shapes, seed, dtype)
        made = make(net, *net.inputs)
        module = net.module([made] if isinstance(made, Value) else list(made))
        with self.local_memory(lanes):
            self.check(module, seed + 1, level=level, device=lanes == FULL)
        inputs = random_inputs(module, seed + 1)
        meaning, chip = run_module(module, inputs), run_module(module, inputs, target=self.target)
        for name, expected in meaning.items():
            if expected.dtype.kind == "f" and expected.size:
                scale = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0)))
                np.testing.assert_allclose(chip[name], expected, atol=close * scale, rtol=close)
            else:
                np.testing.assert_array_equal(chip[name], expected)
