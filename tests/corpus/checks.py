"""What is asked of every compilation: small functions in a table, each with a name that a failure is listed under."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx

import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.plugins import registry
from bmcompiler.result import Result
from bmcompiler.runtime import Session
from bmcompiler.runtime.session import _to_device

from .graph import run_onnx


class CheckError(Exception):
    """A check that does not hold: its name, and what was found."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        super().__init__(text)


@dataclass
class Trial:
    """A network for a chip: what is compiled and run is kept for all checks."""

    model: onnx.ModelProto
    data: dict[str, np.ndarray]
    batch: dict[str, np.ndarray]
    chip: str
    precision: str
    level: int
    kept: dict[int, Result] = field(default_factory=dict)

    def compiled(self, level: int | None = None) -> Result:
        """The program of a level."""
        level = self.level if level is None else level
        if level not in self.kept:
            self.kept[level] = self.compiled_anew(level)
        return self.kept[level]

    def compiled_anew(self, level: int) -> Result:
        """Compiled once more."""
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(self.model, Path(folder) / "net.onnx")
            data = self.data if self.precision == "int8" else None
            return bmcompiler.compile(
                Path(folder) / "net.onnx",
                target=self.chip,
                quantize=self.precision,
                opt=level,
                data=data,
                log=lambda note: None,  # such as what integers the net takes
            )

    def run(self, level: int) -> dict[str, np.ndarray]:
        """Raw outputs of the program."""
        session = Session(self.compiled(level).model)
        return session.run(self._raw(session), raw=True)

    def _raw(self, session: Session) -> dict[str, np.ndarray]:
        return {info.name: _to_device(info.name, info, self.batch[info.name], False) for info in session.inputs}

    @cached_property
    def outputs(self) -> dict[str, np.ndarray]:
        """Raw outputs of the drawn level."""
        return self.run(self.level)

    @cached_property
    def meant(self) -> dict[str, np.ndarray]:
        """What `evaluate` gives for the same inputs."""
        result = self.compiled()
        raw = self._raw(Session(result.model))
        target = registry.lookup("bmcompiler.targets", self.chip, "target")
        return run_module(result.module, raw, target=target)

    @cached_property
    def real(self) -> dict[str, np.ndarray]:
        """What ONNX Runtime gives."""
        names = [out.name for out in self.model.graph.output]
        return dict(zip(names, run_onnx(self.model, self.batch)))


def program_is_evaluate(trial: Trial) -> None:
    """Simulator and interpreter agree in every bit."""
    for name, wanted in trial.meant.items():
        _same(trial.outputs[name], wanted, name)


def levels_agree(trial: Trial) -> None:
    """Floats have the same bits at all levels; so have integers, unless each level chose modes of its own."""
    if trial.precision == "int8":
        return
    other = (trial.level + 1 + len(trial.model.graph.node) % 2) % 3
    found = trial.run(other)
    for name, wanted in trial.outputs.items():
        _same(found[name], wanted, f"{name}, levels {other} and {trial.level}")


def near_float(trial: Trial) -> None:
    """Floats are what ONNX Runtime gives, as near as their type allows."""
    if trial.precision == "int8":
        return
    bound = {"f32": 1e-3, "f16": 0.1, "bf16": 0.3}[trial.precision]
    for name, wanted in trial.real.items():
        found = np.asarray(trial.outputs[name], np.float64).reshape(wanted.shape)
        wanted = wanted.astype(np.float64)
        if np.abs(wanted).max(initial=0) > 30000 and trial.precision == "f16":
            continue
        error = np.linalg.norm(found - wanted) / (np.linalg.norm(wanted) + 1e-6 * wanted.size**0.5)
        if not error <= bound:
            raise CheckError("far-from-float", f"{name}: {error:.3g} of its length from ONNX Runtime, at most {bound}")


def same_bytes(trial: Trial) -> None:
    """Compiled twice, the program has the same bytes."""
    first, second = (_bytes(result) for result in (trial.compiled(), trial.compiled_anew(trial.level)))
    if first != second:
        raise CheckError("bytes", f"{len(first)} and {len(second)} bytes, not the same")


def _bytes(result: Result) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        result.save(Path(folder) / "net.bmodel")
        return (Path(folder) / "net.bmodel").read_bytes()


def _same(found: np.ndarray, wanted: np.ndarray, name: str) -> None:
    if found.tobytes() != wanted.astype(found.dtype).tobytes():
        apart = int((found.reshape(-1) != wanted.reshape(-1)).sum()) if found.size == wanted.size else found.size
        raise CheckError(
            "differs", f"{name}: {apart} of {wanted.size} elements differ ({found.dtype}{list(found.shape)})"
        )


@dataclass(frozen=True)
class Check:
    """A question, and how often it is asked."""

    ask: Callable[[Trial], None]
    share: float


CHECKS = {
    "no traceback": Check(lambda trial: void(trial.compiled()), 1),
    "program = evaluate": Check(program_is_evaluate, 1),
    "near float": Check(near_float, 0.8),
    "levels agree": Check(levels_agree, 0.4),
    "same bytes": Check(same_bytes, 0.1),
}


def void(_: object) -> None:
    """Nothing."""
