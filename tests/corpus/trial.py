"""A network for a chip, and what its compilations and runs give: kept, so that many questions can be asked of it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import bmcompiler
from bmcompiler.analysis.estimate import estimate
from bmcompiler.analysis.profile import Timing
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module
from bmcompiler.proof.cost import expected_seconds
from bmcompiler.result import Result
from bmcompiler.runtime import Session
from bmcompiler.runtime.session import _to_device
from bmcompiler.target import Target, find_target

from .graph import run_onnx
from .shrink import Sample
from .sizes import resized

SIMULATED = 25.0
"""Seconds that simulator and `evaluate` may be expected to take; what takes longer is compiled and timed only."""
Arrays = dict[str, np.ndarray]
Shapes = list[list[int]]


class CheckError(Exception):
    """A check that does not hold: its name, and what was found."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        super().__init__(text)


class NotAskedError(Exception):
    """A question that this network cannot be asked, and why."""


@dataclass
class Trial:
    """A network for a chip: what is compiled and run is kept for all checks."""

    model: onnx.ModelProto
    data: Arrays
    batch: Arrays
    chip: str
    precision: str
    level: int
    kept: dict[int, Result] = field(default_factory=dict)

    def compiled(self, level: int | None = None) -> Result:
        """The program of a level."""
        level = self.level if level is None else level
        if level not in self.kept:
            self.kept[level] = self.compiled_anew(opt=level)
        return self.kept[level]

    def compiled_anew(self, **changed: Any) -> Result:
        """Compiled once more, with other arguments of `bmcompiler.compile`."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.onnx"
            onnx.save(self.model, path)
            return bmcompiler.compile(path, **self.arguments(**changed), log=quiet)

    def arguments(self, **changed: Any) -> dict[str, Any]:
        """Arguments of `bmcompiler.compile` beside the file."""
        given = {"target": self.chip, "quantize": self.precision, "opt": self.level} | changed
        return given | {"data": self.data if given["quantize"] == "int8" else None}

    def of(self, model: onnx.ModelProto, data: Arrays) -> Trial:
        """Another network in the same mode."""
        heads = {i.name: i.type.tensor_type.shape.dim[0].dim_value for i in model.graph.input}
        batch = {name: data[name][:count] for name, count in heads.items()}
        return replace(self, model=model, data=data, batch=batch, kept={})

    @property
    def target(self) -> Target:
        """The chip."""
        return find_target(self.chip)

    @property
    def shapes(self) -> Shapes:
        """Those of the inputs, in order."""
        return [[dim.dim_value for dim in i.type.tensor_type.shape.dim] for i in self.model.graph.input]

    @cached_property
    def doubled(self) -> Result:
        """The program for twice the batch. Raises NotAskedError for a net whose batch stands in its constants."""
        twice = [[2 * shape[0], *shape[1:]] for shape in self.shapes]
        try:
            return self.compiled_anew(shapes=twice, check="never")
        except bmcompiler.errors.ShapeError as error:
            raise NotAskedError("the batch is fixed inside") from error

    @property
    def of_twice(self) -> Result:
        """The program for twice the batch, whose constants say so where the batch stands in them."""
        try:
            return self.doubled
        except NotAskedError:
            shapes = {i.name: (2 * d[0], *d[1:]) for i, d in zip(self.model.graph.input, self.shapes)}
            larger = resized(Sample(self.model, self.data), shapes)
            if larger is None:
                raise
            return self.of(larger.model, larger.data).compiled_anew(check="never")

    @cached_property
    def timing(self) -> Timing:
        """Of the program. Raises NotAskedError for a chip without a timing model."""
        return timing_of(self.compiled())

    def need_simulation(self) -> None:
        """Raises NotAskedError where the simulator would take too long."""
        result = self.compiled()
        commands = sum(row.commands for row in result.rows)
        if expected_seconds([result.module], commands, self.target) > SIMULATED:
            raise NotAskedError("too large to be simulated")

    def run(self, level: int) -> Arrays:
        """Raw outputs of the program."""
        self.need_simulation()
        session = Session(self.compiled(level).model)
        return session.run(self.raw(session), raw=True)

    def raw(self, session: Session) -> Arrays:
        """Inputs of one run as the device takes them."""
        return {info.name: _to_device(info.name, info, self.batch[info.name], False) for info in session.inputs}

    @cached_property
    def outputs(self) -> Arrays:
        """Raw outputs of the drawn level."""
        return self.run(self.level)

    @cached_property
    def meant(self) -> Arrays:
        """What `evaluate` gives for the same inputs."""
        self.need_simulation()
        result = self.compiled()
        return self.evaluated(result.module, self.raw(Session(result.model)))

    def evaluated(self, module: Module, raw: Arrays) -> Arrays:
        """What final IR means."""
        return run_module(module, raw, target=self.target)

    @cached_property
    def real(self) -> Arrays:
        """What ONNX Runtime gives."""
        names = [out.name for out in self.model.graph.output]
        return dict(zip(names, run_onnx(self.model, self.batch)))


def quiet(note: str) -> None:
    """What the compiler logs, such as what integers the net takes, is not shown."""


def timing_of(result: Result) -> Timing:
    """Of a program. Raises NotAskedError for a chip without a timing model."""
    timing = estimate(result)
    if timing is None:
        raise NotAskedError("no timing model")
    return timing


def bytes_of(result: Result) -> bytes:
    """The model file."""
    with tempfile.TemporaryDirectory() as folder:
        result.save(Path(folder) / "net.bmodel")
        return (Path(folder) / "net.bmodel").read_bytes()


def same(found: np.ndarray, wanted: np.ndarray, name: str) -> None:
    """Raises CheckError where bits differ."""
    if found.tobytes() != wanted.astype(found.dtype).tobytes():
        apart = int((found.reshape(-1) != wanted.reshape(-1)).sum()) if found.size == wanted.size else found.size
        raise CheckError(
            "differs", f"{name}: {apart} of {wanted.size} elements differ ({found.dtype}{list(found.shape)})"
        )
