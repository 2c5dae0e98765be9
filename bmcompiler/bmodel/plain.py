"""A model file for chips that have none of their own: eight bytes of magic, a JSON description, weights and programs.

A chip's container is a subclass that names its magic. A program is a list of parts that run one after the other:
commands for the device, or the parameters of a CPU subnet (`bmcompiler.codegen.cpu_segment`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any, ClassVar, NamedTuple, TypeVar

from bmcompiler.bmodel.layers import PICTURES, RANGES, SIZES, note_in, with_note
from bmcompiler.bmodel.model import MAX_BYTES, BModel, Buffer, Stage, TensorInfo
from bmcompiler.bmodel.shared_notes import apart, together
from bmcompiler.errors import FileFormatError, UsageError
from bmcompiler.files.store import StrPath

_MAGIC_BYTES = 8
_HEADER = _MAGIC_BYTES + 4
_TENSOR = {"name": str, "shape": list, "fmt": int, "offset": int, "threshold": float, "scale": float, "zero_point": int}
_PROGRAM = {"inputs": list, "outputs": list, "neuron_size": int, "weight_index": int, "layers": str, "parts": list}
_Model = TypeVar("_Model", bound="PlainModel")


class Part(NamedTuple):
    """Commands of the device, or the parameters of a CPU subnet."""

    device: bool
    data: Buffer


@dataclass
class PlainProgram:
    """The program for one set of input shapes; fields as in `Stage`, `layers` as `bmodel.layers` writes it."""

    inputs: list[TensorInfo]
    outputs: list[TensorInfo]
    neuron_size: int
    parts: list[Part]
    weight_index: int = 0
    layers: str = ""


@dataclass
class PlainModel(BModel):
    """One net with a program per input shape, its weight sets, and what made the file. `magic` has eight bytes."""

    net: str
    programs: list[PlainProgram]
    weights: list[Buffer] = field(default_factory=list)
    producer: str = ""

    magic: ClassVar[bytes]

    @property
    def target(self) -> str:
        return self.container

    @property
    def summary(self) -> dict[str, str | int]:
        facts: dict[str, str | int] = {"container": self.container, "chip": self.target.upper()}
        return facts | ({"producer": self.producer} if self.producer else {})

    @property
    def weight_sets(self) -> tuple[Buffer, ...]:
        return tuple(self.weights)

    def coefficients(self, program: PlainProgram) -> Buffer:
        """The weights of a program."""
        return self.weights[program.weight_index] if self.weights else b""

    def stages(self) -> tuple[Stage, ...]:
        return tuple(
            Stage(
                self.net,
                index,
                tuple(one.inputs),
                tuple(one.outputs),
                len(self.coefficients(one)),
                sum(len(part.data) for part in one.parts if part.device),
                one.neuron_size,
                tuple(f"{'device' if part.device else 'host'}, {len(part.data)} bytes" for part in one.parts),
                pictures=note_in(one.layers, PICTURES),
                sizes=note_in(one.layers, SIZES),
                ranges=note_in(one.layers, RANGES),
            )
            for index, one in enumerate(self.programs)
        )

    def note(self, line: int, text: str) -> None:
        for one in self.programs:
            one.layers = with_note(one.layers, line, text)

    def pieces(self) -> Iterator[tuple[str, Buffer]]:
        for index, one in enumerate(self.programs):
            for number, part in enumerate(one.parts):
                yield f"net0_stage{index}_part{number}.{'commands' if part.device else 'mlir'}", part.data
        for index, data in enumerate(self.weights):
            yield f"weight{index}.bin", data

    def select(self: _Model, stage: int) -> _Model:
        if not 0 <= stage < len(self.programs):
            raise UsageError(f"there is no program {stage}", remedy=f"the file has 0 to {len(self.programs) - 1}")
        return replace(self, programs=[self.programs[stage]])

    def check(self, file: StrPath | None = None) -> None:
        """What a reader relies on. Raises FileFormatError naming file, program and value."""
        if not self.programs:
            raise FileFormatError("the model holds no program", file=file)
        for index, one in enumerate(self.programs):
            if not 0 <= one.neuron_size <= MAX_BYTES:
                raise FileFormatError(f"program {index} asks for {one.neuron_size} bytes of memory", file=file)
            if not 0 <= one.weight_index < max(1, len(self.weights)):
                raise FileFormatError(f"program {index} uses weight set {one.weight_index}", file=file)
            for kind, tensors in (("input", one.inputs), ("output", one.outputs)):
                for number, tensor in enumerate(tensors):
                    tensor.check(f"program {index}, {kind} {number}", one.neuron_size, file)

    # -- the file ------------------------------------------------------------------------------------------------------
    def parts(self, file: StrPath | None = None) -> list[Buffer]:
        self.check(file)
        notes = together([one.layers for one in self.programs])
        programs = [_described(replace(one, layers=text)) for one, text in zip(self.programs, notes, strict=True)]
        facts = {"net": self.net, "producer": self.producer, "weights": [len(data) for data in self.weights]}
        text = json.dumps({**facts, "programs": programs}).encode()
        commands = [part.data for one in self.programs for part in one.parts]
        return [self.magic, len(text).to_bytes(4, "little"), text, *self.weights, *commands]

    @classmethod
    def is_one(cls, data: memoryview) -> bool:
        """Whether a file begins as this kind does."""
        return bytes(data[:_MAGIC_BYTES]) == cls.magic

    @classmethod
    def read(cls: type[_Model], data: memoryview, file: StrPath) -> _Model:
        """A model from the content of a file; weights and commands are views of `data`.

        Raises:
            FileFormatError: truncated or malformed.
        """
        size = int.from_bytes(data[_MAGIC_BYTES:_HEADER], "little")
        try:
            facts = json.loads(bytes(data[_HEADER : _HEADER + size]))
            _need(facts, {"net": str, "producer": str, "weights": list, "programs": list})
            for one in facts["programs"]:
                _need(one, _PROGRAM)
                for tensor in (*one["inputs"], *one["outputs"]):
                    _need(tensor, _TENSOR)
                    _all_of(int, tensor["shape"])
                _all_of(bool, [device for device, _ in one["parts"]])
            sizes = [*facts["weights"], *(bytes_ for one in facts["programs"] for _, bytes_ in one["parts"])]
            _all_of(int, sizes)
        except (ValueError, TypeError, RecursionError) as error:
            raise FileFormatError("the description of the model is malformed", file=file) from error
        ends = list(accumulate(sizes, initial=_HEADER + size))
        if min(sizes, default=0) < 0 or ends[-1] != len(data):
            raise FileFormatError(f"the file should have {ends[-1]} bytes, it has {len(data)}", file=file)
        blobs = iter([data[start:end] for start, end in pairwise(ends)])
        weights: list[Buffer] = [next(blobs) for _ in facts["weights"]]
        programs = [_program(one, blobs) for one in facts["programs"]]
        for one, notes in zip(programs, apart([one.layers for one in programs], file), strict=True):
            one.layers = notes
        model = cls(facts["net"], programs, weights, facts["producer"])
        model.check(file)
        return model


def _described(one: PlainProgram) -> dict[str, Any]:
    return {
        "inputs": [_tensor_facts(tensor) for tensor in one.inputs],
        "outputs": [_tensor_facts(tensor) for tensor in one.outputs],
        "neuron_size": one.neuron_size,
        "weight_index": one.weight_index,
        "layers": one.layers,
        "parts": [[part.device, len(part.data)] for part in one.parts],
    }


def _tensor_facts(tensor: TensorInfo) -> dict[str, Any]:
    facts = asdict(tensor)
    return {name: kind(facts[name]) for name, kind in _TENSOR.items()}


def _program(facts: dict[str, Any], blobs: Iterator[memoryview]) -> PlainProgram:
    inputs, outputs = (
        [TensorInfo(**{**one, "shape": tuple(one["shape"])}) for one in facts[kind]] for kind in ("inputs", "outputs")
    )
    parts = [Part(device, next(blobs)) for device, _ in facts["parts"]]
    return PlainProgram(inputs, outputs, facts["neuron_size"], parts, facts["weight_index"], facts["layers"])


def _need(facts: Any, kinds: dict[str, type]) -> None:
    """Raises ValueError unless `facts` has exactly these members."""
    if not isinstance(facts, dict) or {name: type(value) for name, value in facts.items()} != kinds:
        raise ValueError("unexpected members")


def _all_of(kind: type, values: Sequence[Any]) -> None:
    if not all(type(value) is kind for value in values):
        raise ValueError(f"not all are {kind.__name__}")
