"""Running a part of a data set: the compiled model, the float network beside it, and the metric of both."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bmcompiler.errors import UsageError
from bmcompiler.evaluation.decisions import per_sample
from bmcompiler.evaluation.metrics import DECIDED, Metric, Outputs, Values
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module
from bmcompiler.numeric.arrays import Array
from bmcompiler.parallel import Task
from bmcompiler.plugins.registry import lookup
from bmcompiler.spelling import spelled


@dataclass(frozen=True)
class Part:
    """Samples that one worker runs at a time, and their labels."""

    inputs: Mapping[str, Array]
    labels: Array | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of the samples and labels."""
        total = hashlib.sha256()
        for name, array in {**self.inputs, "": self.labels}.items():
            if array is not None:
                total.update(f"{name} {array.shape} {array.dtype}".encode())
                total.update(np.ascontiguousarray(array).tobytes())
        return total.hexdigest()


@dataclass(frozen=True)
class PartResult:
    """Numbers per sample of the compiled model and, if there is one, of the float network."""

    device: Values
    float: Values | None = None


@dataclass
class Opened:
    """What a process needs: a session of the compiled model and the float network."""

    session: Any
    network: Module | None


@dataclass(frozen=True)
class Evaluation(Task[Opened, Part, PartResult]):
    """Evaluates parts.

    Attributes:
        model: bytes of the .bmodel; network: files of the float network as MLIR text, by name, None without it.
        metric: what is measured. output: the output that counts, "" for all.
        fast: let float sums differ in their last bits from the chip's.
    """

    model: bytes = field(repr=False)
    metric: Metric
    network: Mapping[str, bytes] | None = field(default=None, repr=False)
    output: str = ""
    fast: bool = False

    @property
    def key(self) -> str:
        """SHA-256 of the files."""
        total = hashlib.sha256(self.model + bytes([self.fast]))
        for name, content in (self.network or {}).items():
            total.update(name.encode() + content)
        return total.hexdigest()

    def load(self) -> Opened:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.bmodel"
            path.write_bytes(self.model)
            session = lookup("bmcompiler.runtimes", "session", "runtime")(path, fast=self.fast)
            network = None if self.network is None else _read_network(Path(folder), self.network)
        if network is not None:
            _need_names(session, network, self.output)
        return Opened(session, network)

    def compute(self, state: Opened, part: Part) -> PartResult:
        found = self._chosen(run_samples(state.session, part.inputs))
        if state.network is None:
            return PartResult(self.metric.values(found, part.labels, None))
        wanted = self._chosen(run_network(state.network, part.inputs))
        if self.metric.name == DECIDED:
            return PartResult(per_sample(state.network.main, found, wanted))
        wanted = {name: wanted[name].reshape(array.shape) for name, array in found.items()}
        beside = None if self.metric.needs_float else self.metric.values(wanted, part.labels, wanted)
        return PartResult(self.metric.values(found, part.labels, wanted), beside)

    def _chosen(self, outputs: Outputs) -> Outputs:
        return {self.output: outputs[self.output]} if self.output else outputs


def run_samples(session: Any, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Outputs with the samples on axis 0, also of models whose outputs have no axis of samples."""
    count = len(next(iter(inputs.values())))
    batch = session.inputs[0].shape[0]
    rows = [info.shape[0] == batch or info.shape[:3] == (1, 1, batch) for info in session.outputs]
    if all(rows):
        return {
            name: value.reshape(count, -1) if len(value) != count else value
            for name, value in session.run(inputs).items()
        }
    single = [session.run({name: array[i : i + 1] for name, array in inputs.items()}) for i in range(count)]
    return {name: np.stack([each[name] for each in single]) for name in single[0]}


def run_network(module: Module, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Outputs of the float network, which has its own batch, with the samples on axis 0."""
    count = len(next(iter(inputs.values())))
    function = module.main
    types = dict(zip(function.input_names, (value.type for value in function.arguments)))
    batch = next(iter(types.values())).shape[0]
    parts: list[dict[str, Array]] = []
    for first in range(0, count, batch):
        step = {}
        for name, array in inputs.items():
            rows = array[first : first + batch].astype(types[name].numpy)
            short = batch - len(rows)
            step[name] = np.concatenate([rows, np.repeat(rows[-1:], short, axis=0)]) if short else rows
        parts.append(run_module(module, step))
    joined = {}
    for name in parts[0]:
        values = [each[name] for each in parts]
        whole = np.concatenate(values) if len(values[0]) == batch else np.stack(values)
        joined[name] = whole[:count]
    return joined


def _need_names(session: Any, network: Module, output: str) -> None:
    """Raise UsageError for a float network that is not the one a model was made of."""
    function = network.main
    for what, known, found in (
        ("inputs", function.input_names, [info.name for info in session.inputs]),
        ("outputs", function.output_names, [output] if output else [info.name for info in session.outputs]),
    ):
        if not set(found) <= set(known):
            raise UsageError(
                f"the float network's {what} are {', '.join(known)}, those of the model {', '.join(found)}",
                remedy=f"give {spelled('network')} the network that was compiled",
            )


def _read_network(folder: Path, files: Mapping[str, bytes]) -> Module:
    from bmcompiler.driver import load_network

    for name, content in files.items():
        (folder / name).write_bytes(content)
    return load_network(folder / next(iter(files)))


def network_files(module: Module) -> dict[str, bytes]:
    """A network as files that `Evaluation` sends to workers."""
    from bmcompiler.files.mlir import save_module

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.mlir"
        save_module(module, path)
        return {each.name: each.read_bytes() for each in sorted(Path(folder).iterdir(), key=lambda f: f != path)}
