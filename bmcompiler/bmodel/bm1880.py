"""The BM1880 model file: magic, length, protocol-buffer message, weight blob (bm1880.md 10.1)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from bmcompiler.bmodel.layers import PICTURES, RANGES, SIZES, note_in, with_note
from bmcompiler.bmodel.model import FMT_I8, FORMATS, MAX_BYTES, BModel, Buffer, Stage, TensorInfo, damaged, digest
from bmcompiler.errors import FileFormatError, UnsupportedError, UsageError
from bmcompiler.files.store import StrPath
from bmcompiler.spelling import spelled

MAGIC = b"\xdd\xaa\x55\xff"
INLINE_MAGIC = b"\xff\xaa\x55\xff"
"""The message follows at once, to the end of the file, with the weights in it; read only."""
HEADER = 8


@dataclass
class Library:
    """A CPU layer plugin carried inside the model (shared objects, never loaded by this tool)."""

    name: str
    x86_64: bytes = b""
    armv8: bytes = b""
    source: bytes = field(default=b"", repr=False, compare=False)


@dataclass
class Command:
    """The program for one set of input shapes.

    Attributes:
        cmdbuf: command records (bm1880.md 3), not relocated.
        neuron_size: bytes of activation memory it needs.
        weight_index: which weight set it reads.
        layers: which records belong to which layer, as text (`bmcompiler.bmodel.layers`); "" = not said.
    """

    inputs: list[TensorInfo]
    outputs: list[TensorInfo]
    cmdbuf: bytes
    neuron_size: int
    weight_index: int = 0
    layers: str = ""
    source: bytes = field(default=b"", repr=False, compare=False)


@dataclass
class Bm1880Model(BModel):
    """A BM1880 model: one net, one command per input shape, shared weight sets.

    Attributes:
        weights: weight sets; views of the mapped file after `load`.
        read_as: the kind of file it was read from; writing always gives the current kind.
        producer: free text that says what made the file ("" = not said).
    """

    net_name: str
    commands: list[Command]
    weights: list[Buffer]
    chip: int = 1880
    fmt: int = FMT_I8
    version: str = "2.1"
    libraries: list[Library] = field(default_factory=list)
    producer: str = ""
    read_as: str = "bm1880"
    source: bytes = field(default=b"", repr=False, compare=False)

    container: ClassVar[str] = "bm1880"

    @property
    def target(self) -> str:
        return f"bm{self.chip}"

    @property
    def summary(self) -> dict[str, str | int]:
        facts: dict[str, str | int] = {"container": self.read_as, "version": self.version, "chip": f"BM{self.chip}"}
        facts["format"] = FORMATS[self.fmt][0] if self.fmt in FORMATS else self.fmt
        if self.producer:
            facts["producer"] = self.producer
        if self.libraries:
            facts["libraries"] = ", ".join(library.name for library in self.libraries)
        return facts

    @property
    def weight_sets(self) -> tuple[Buffer, ...]:
        return tuple(self.weights)

    def weight_digests(self) -> tuple[str, ...]:
        """SHA-256 of every weight set."""
        return tuple(digest(data) for data in self.weights)

    def stages(self) -> tuple[Stage, ...]:
        return tuple(
            Stage(
                self.net_name,
                index,
                tuple(command.inputs),
                tuple(command.outputs),
                len(self.weights[command.weight_index]) if self.weights else 0,
                len(command.cmdbuf),
                command.neuron_size,
                pictures=note_in(command.layers, PICTURES),
                sizes=note_in(command.layers, SIZES),
                ranges=note_in(command.layers, RANGES),
            )
            for index, command in enumerate(self.commands)
        )

    def note(self, line: int, text: str) -> None:
        for command in self.commands:
            command.layers = with_note(command.layers, line, text)

    def check(self, file: StrPath | None = None) -> None:
        """Every number that a reader or the runtime relies on.

        Raises:
            FileFormatError: naming file, command and value.
        """
        if not self.commands:
            raise damaged("the model holds no command buffer", file)
        for index, command in enumerate(self.commands):
            self._check_command(f"command {index}", command, file)

    def _check_command(self, where: str, command: Command, file: StrPath | None) -> None:
        if not 0 <= command.neuron_size <= MAX_BYTES:
            raise damaged(f"{where} asks for {command.neuron_size} of {MAX_BYTES} bytes of activation memory", file)
        if not 0 <= command.weight_index < max(1, len(self.weights)):
            raise damaged(f"{where} uses weight set {command.weight_index}, the file has {len(self.weights)}", file)
        if not command.inputs or not command.outputs:
            kind = "output" if command.inputs else "input"
            raise damaged(f"{where} has no {kind}", file)
        for kind, tensors in (("input", command.inputs), ("output", command.outputs)):
            for number, tensor in enumerate(tensors):
                tensor.check(f"{where}, {kind} {number}", command.neuron_size, file)

    def parts(self, file: StrPath | None = None) -> list[Buffer]:
        from bmcompiler.bmodel.bm1880_message import encode

        self.check(file)
        message = encode(self)
        if len(message) >= 1 << 32:
            raise FileFormatError(f"{len(message)} bytes of commands do not fit into the file", file=file)
        return [MAGIC + len(message).to_bytes(4, "little"), message, *self.weights]

    def pieces(self) -> Iterator[tuple[str, Buffer]]:
        for index, command in enumerate(self.commands):
            yield f"net0_stage{index}.cmdbuf", command.cmdbuf
            facts = {
                "net": self.net_name,
                "weight": f"weight{command.weight_index}.bin" if self.weights else None,
                "neuron_size": command.neuron_size,
                "inputs": [_tensor_facts(tensor) for tensor in command.inputs],
                "outputs": [_tensor_facts(tensor) for tensor in command.outputs],
            }
            yield f"net0_stage{index}.json", (json.dumps(facts, indent=2) + "\n").encode()
        for index, data in enumerate(self.weights):
            yield f"weight{index}.bin", data
        for index, library in enumerate(self.libraries):
            for processor, code in (("x86_64", library.x86_64), ("armv8", library.armv8)):
                if code:
                    yield f"library{index}_{processor}.so", code

    def select(self, stage: int) -> Bm1880Model:
        if not 0 <= stage < len(self.commands):
            raise UsageError(f"there is no program {stage}", remedy=f"the file has 0 to {len(self.commands) - 1}")
        return replace(self, commands=[self.commands[stage]])

    def combined(self, others: Iterable[BModel], name: str | None = None) -> Bm1880Model:
        """One model with the commands of all; equal weight sets are stored once.

        Raises:
            UnsupportedError: chips, formats, or (without `name`) net names differ, or an input shape occurs twice.
        """
        models = [self, *_same_kind(self, others, name)]
        places: dict[str, int] = {}
        weights: list[Buffer] = []
        commands: list[Command] = []
        for model in models:
            keys = model.weight_digests()
            for key, data in zip(keys, model.weights, strict=True):
                if key not in places:
                    places[key] = len(weights)
                    weights.append(data)
            for command in model.commands:
                index = places[keys[command.weight_index]] if keys else 0
                commands.append(replace(command, weight_index=index))
        shapes = [tuple(tensor.shape for tensor in command.inputs) for command in commands]
        twice = next((shape for index, shape in enumerate(shapes) if shape in shapes[:index]), None)
        if twice is not None:
            text = ", ".join(str(list(shape)) for shape in twice)
            raise UnsupportedError(
                f"input shape {text} occurs twice", remedy="combine files compiled for different shapes"
            )
        libraries = {library.name: library for model in models for library in model.libraries}
        return replace(
            self, net_name=name or self.net_name, commands=commands, weights=weights, libraries=list(libraries.values())
        )


def _same_kind(first: Bm1880Model, others: Iterable[BModel], name: str | None) -> Sequence[Bm1880Model]:
    """`others`, checked to be of one chip, format and net with `first`."""
    models = []
    for model in others:
        if not isinstance(model, Bm1880Model) or (model.chip, model.fmt) != (first.chip, first.fmt):
            raise UnsupportedError(
                f"models of different chips or formats ({first.target}, {model.target}) cannot share a file",
                remedy="compile both for the same target",
            )
        if name is None and model.net_name != first.net_name:
            raise UnsupportedError(
                f"the nets have different names ('{first.net_name}', '{model.net_name}')",
                remedy=f"pass {spelled('name')} if they are the same network",
            )
        models.append(model)
    return models


def _tensor_facts(tensor: TensorInfo) -> dict[str, object]:
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "offset": tensor.offset,
        "threshold": tensor.threshold,
    }


def read(data: memoryview, file: StrPath) -> Bm1880Model:
    """A model from the content of a file; weight sets are views of `data`.

    Raises:
        FileFormatError: truncated or malformed.
    """
    from bmcompiler.bmodel.bm1880_message import decode

    if data[: len(INLINE_MAGIC)] == INLINE_MAGIC:
        model = decode(data[len(INLINE_MAGIC) :], memoryview(b""), file)
        model.check(file)
        return model
    if len(data) < HEADER:
        raise damaged(f"the header needs {HEADER} bytes, the file has {len(data)}", file)
    length = int.from_bytes(data[4:HEADER], "little")
    if HEADER + length > len(data):
        raise damaged(
            f"the model description should be {length} bytes, only {len(data) - HEADER} follow the header", file
        )
    model = decode(data[HEADER : HEADER + length], data[HEADER + length :], file)
    model.check(file)
    return model
