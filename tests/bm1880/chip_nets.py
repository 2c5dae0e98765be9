"""Small random int8 nets, and the comparison all code generation tests share: model file -> runtime == interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import planned_cycles
import pytest

from bmcompiler.backends.bm1880.cmdbuf import records
from bmcompiler.backends.bm1880.isa import FORMATS, HEADER_SIZE, Engine
from bmcompiler.backends.bm1880.target import TARGET
from bmcompiler.bmodel.bm1880 import Bm1880Model, read
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Quant, TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session
from bmcompiler.target import Compiled

QUANT = Quant(1 / 64)
Shape = tuple[int, ...]
Make = Callable[..., "Value | Sequence[Value]"]


@contextmanager
def local_memory(lane_bytes: int) -> Iterator[None]:
    """Local memory as if it had fewer bytes per lane, so that small tensors are cut into many tiles."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TARGET.machine.tiler, "lane_bytes", lane_bytes)
        yield


class Net:
    """A net under construction with reproducible random weights."""

    def __init__(self, shapes: Sequence[Shape], seed: int = 0, dtype: str = "i8") -> None:
        self.rng = np.random.default_rng(seed)
        self.b = Builder.new("net")
        self.inputs = [self.b.input(f"x{i}", TensorType(shape, dtype, QUANT)) for i, shape in enumerate(shapes)]

    def i8(self, *shape: int) -> Value:
        """A random int8 constant."""
        return self.b.weight(self.rng.integers(-128, 128, shape).astype(np.int8), "w")

    def bias(self, size: int) -> Value:
        """A random int16 constant (size,)."""
        return self.b.weight(self.rng.integers(-4000, 4000, size).astype(np.int16), "b")

    def module(self, values: Sequence[Value]) -> Module:
        """The finished net with outputs y0, y1, ..."""
        module = self.b.outputs(list(values), [f"y{i}" for i in range(len(values))])
        verify_module(module)
        return module


def random_inputs(module: Module, seed: int = 1) -> dict[str, np.ndarray]:
    """Full-range values for every input."""
    rng = np.random.default_rng(seed)
    function = module.main
    return {name: _random(rng, value.type) for name, value in zip(function.input_names, function.arguments)}


def _random(rng: np.random.Generator, type: TensorType) -> np.ndarray:
    if type.is_float:
        return rng.normal(size=type.shape).astype(type.numpy)
    limits = np.iinfo(type.numpy)
    return rng.integers(limits.min, limits.max, type.shape, type.numpy, endpoint=True)


def reordered(cmdbuf: bytes, eager: Engine) -> bytes:
    """The records in another order the chip may take: `eager` runs ahead as far as its wait ids allow (bm1880.md 6)."""
    index = records(cmdbuf)
    parts = [cmdbuf[at - HEADER_SIZE : at + size] for at, size in zip(index.offset.tolist(), index.length.tolist())]
    out: list[bytes] = []
    queues: dict[Engine, list[tuple[int, int]]] = {Engine.TPU: [], Engine.GDMA: []}
    waits = {Engine.TPU: "cmd_id_gdma", Engine.GDMA: "cmd_id_tpu"}
    for position, engine in enumerate(map(Engine, index.engine.tolist())):
        if engine in queues:
            payload = parts[position][HEADER_SIZE:]
            queues[engine].append((position, FORMATS[engine].unpack(payload)[waits[engine]]))
            continue
        out += (parts[i] for i in _drained(queues, eager))
        out.append(parts[position])
    return b"".join([*out, *(parts[i] for i in _drained(queues, eager))])


def _drained(queues: dict[Engine, list[tuple[int, int]]], eager: Engine) -> Iterator[int]:
    """Empty the queues of one CPU segment; ids count from 1 in each."""
    done = dict.fromkeys(queues, 0)
    other = Engine.TPU if eager is Engine.GDMA else Engine.GDMA
    while any(queues.values()):
        for engine, partner in ((eager, other), (other, eager)):
            if queues[engine] and queues[engine][0][1] <= done[partner]:
                yield queues[engine].pop(0)[0]
                done[engine] += 1
                break
        else:
            raise AssertionError("the engines wait for each other for ever")


def check(modules: Module | Sequence[Module]) -> Compiled:
    """Compile, write the model, read it back, run in several orders, and compare with the interpreter.

    Tiles take the cycles that they were planned for.
    """
    modules = [modules] if isinstance(modules, Module) else list(modules)
    with planned_cycles.computations() as tiles:
        compiled = TARGET.compile(modules, 2)
    planned_cycles.check(tiles)
    model = read(memoryview(b"".join(compiled.model.parts())), "test.bmodel")
    compare(modules, model)
    for eager in (Engine.GDMA, Engine.TPU):
        commands = [replace(c, cmdbuf=reordered(bytes(c.cmdbuf), eager)) for c in model.commands]
        compare(modules, replace(model, commands=commands))
    return compiled


def compare(modules: Sequence[Module], model: Bm1880Model) -> None:
    """Two runs of every program against the interpreter."""
    session = Session(model)
    for run in range(2):
        for module in modules:
            inputs = random_inputs(module, run)
            got, want = session.run(inputs, raw=True), run_module(module, inputs)
            assert list(got) == list(want)
            for name in want:
                np.testing.assert_array_equal(got[name], want[name].reshape(want[name].shape or (1,)), err_msg=name)
                assert got[name].dtype == want[name].dtype


def check_op(
    make: Make, *shapes: Shape, seed: int = 0, lanes: int = TARGET.machine.tiler.lane_bytes, device: bool = True
) -> Compiled:
    """`check` on the net that `make(net, *inputs)` builds.

    `lanes` are bytes of local memory per lane; `device` says that no op may fall back to the CPU.
    """
    net = Net(shapes, seed)
    with net.b.at("layer"):
        made = make(net, *net.inputs)
    module = net.module(made if isinstance(made, (list, tuple)) else [made])
    with local_memory(lanes):
        compiled = check(module)
    if device:
        assert [row.reason for row in compiled.rows if row.where == "cpu"] == []
    return compiled
