"""BM1880 model <-> its protocol-buffer message.

Encoding starts from the message that was read, when there was one, and sets only what differs: fields of newer vendor
tools and the choice between "absent" and "default value" survive a load and save, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from google.protobuf.message import DecodeError

from bmcompiler.bmodel import bm1880_pb2 as pb
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command, Library
from bmcompiler.bmodel.model import MAX_RANK, Buffer, TensorInfo, damaged
from bmcompiler.bmodel.shared_notes import apart, together
from bmcompiler.files.store import StrPath


def decode(message: memoryview, blob: memoryview, file: StrPath) -> Bm1880Model:
    """Model from its message and the weight blob behind it. Raises FileFormatError when either is malformed."""
    try:
        parsed = pb.Model.FromString(bytes(message))
        missing = [name for name in ("net_name", "chip", "fmt") if not parsed.HasField(name)]
        if missing:
            raise damaged(f"the model description lacks {', '.join(missing)}", file)
        return _model(parsed, blob, file)
    except (DecodeError, UnicodeDecodeError) as error:
        reason = f"the model description cannot be decoded ({error})"
        raise damaged(reason, file) from error


def _model(parsed: pb.Model, blob: memoryview, file: StrPath) -> Bm1880Model:
    commands = [_command(index, command, parsed.fmt, file) for index, command in enumerate(parsed.command)]
    for command, notes in zip(commands, apart([command.layers for command in commands], file), strict=True):
        command.layers = notes
    return Bm1880Model(
        net_name=_text(parsed.net_name, "the net name", file),
        commands=commands,
        weights=_weights(parsed, blob, file),
        chip=parsed.chip,
        fmt=parsed.fmt,
        version=_text(parsed.version, "the version", file),
        libraries=[
            Library(
                name=_text(entry.name, "a library name", file),
                x86_64=entry.lib_x86_64,
                armv8=entry.lib_armv8,
                source=_rest(entry, "lib_x86_64", "lib_armv8"),
            )
            for entry in parsed.library
        ],
        producer=_text(parsed.producer, "the producer", file),
        source=_rest(parsed, "command", "library", "weight", "weight_info"),
    )


def _command(index: int, message: pb.Command, fmt: int, file: StrPath) -> Command:
    where = f"command {index}"
    return Command(
        inputs=[_tensor(f"{where}, input {n}", entry, fmt, file) for n, entry in enumerate(message.input)],
        outputs=[_tensor(f"{where}, output {n}", entry, fmt, file) for n, entry in enumerate(message.output)],
        cmdbuf=message.cmdbuf,
        neuron_size=message.neuron_size,
        weight_index=message.weight_index,
        layers=_text(message.layers, f"the layer list of {where}", file),
        source=_rest(message, "input", "output", "cmdbuf", "layers"),
    )


def _text(value: str | bytes, what: str, file: StrPath) -> str:
    """A string field; the decoder hands out bytes when they are no UTF-8."""
    if isinstance(value, bytes):
        raise damaged(f"{what} is not text", file)
    return value


def _rest(message: Any, *taken: str) -> bytes:
    """What is left of a message without the fields that live elsewhere; empties those fields."""
    for name in taken:
        message.ClearField(name)
    rest: bytes = message.SerializePartialToString()
    return rest


def _tensor(where: str, message: pb.Input | pb.Output, fmt: int, file: StrPath) -> TensorInfo:
    rank = len(message.shape.dim)
    if rank > MAX_RANK:  # before a tuple of them is made
        reason = f"{where} has {rank} dimensions, at most {MAX_RANK} are possible"
        raise damaged(reason, file)
    # Vendor files leave fmt out: then the model's applies. An explicit 0 is float32, the result of a CPU layer.
    return TensorInfo(
        name=_text(message.name, f"the name of {where}", file),
        shape=tuple(message.shape.dim),
        fmt=message.fmt if message.HasField("fmt") else fmt,
        offset=message.offset,
        threshold=message.threshold,
        source=(type(message).__name__, message.SerializePartialToString()),
    )


def _weights(parsed: pb.Model, blob: memoryview, file: StrPath) -> list[Buffer]:
    if parsed.weight and not parsed.weight_info:
        return list(parsed.weight)
    ranges = [(entry.weight_offset, entry.weight_length) for entry in parsed.weight_info]
    for index, (start, length) in enumerate(ranges):
        if start + length > len(blob):
            raise damaged(f"weight set {index} is said to be bytes {start} to {start + length} of {len(blob)}", file)
    if sum(length for _, length in ranges) > len(blob):
        raise damaged("weight sets overlap", file)
    return [blob[start : start + length] for start, length in ranges]


def encode(model: Bm1880Model) -> bytes:
    """The message of a checked model; equal models give equal bytes."""
    message = pb.Model()
    message.MergeFromString(model.source)
    message.net_name, message.chip, message.fmt = model.net_name, model.chip, model.fmt
    _put(message, producer=model.producer)
    if model.read_as == model.container:  # the version of an older kind of file says nothing about this one
        _put(message, version=model.version)
    for command, notes in zip(model.commands, together([command.layers for command in model.commands]), strict=True):
        _put_command(message.command.add(), replace(command, layers=notes), model.fmt)
    for library in model.libraries:
        entry = message.library.add()
        entry.MergeFromString(library.source)
        _put(entry, name=library.name, lib_x86_64=library.x86_64, lib_armv8=library.armv8)
    start = 0
    for data in model.weights:
        message.weight_info.add(weight_offset=start, weight_length=len(data))
        start += len(data)
    return message.SerializeToString(deterministic=True)


def _put_command(message: pb.Command, command: Command, fmt: int) -> None:
    message.MergeFromString(command.source)
    _put(message, cmdbuf=command.cmdbuf, neuron_size=command.neuron_size, weight_index=command.weight_index)
    _put(message, layers=command.layers)
    _put_tensors(message.input.add, command.inputs, fmt)
    _put_tensors(message.output.add, command.outputs, fmt)


def _put_tensors(add: Callable[[], pb.Input | pb.Output], tensors: Iterable[TensorInfo], fmt: int) -> None:
    for tensor in tensors:
        entry = add()
        if tensor.source is not None and tensor.source[0] == type(entry).__name__:
            entry.MergeFromString(tensor.source[1])
        if (entry.fmt if entry.HasField("fmt") else fmt) != tensor.fmt:
            entry.fmt = tensor.fmt
        _put(entry, name=tensor.name, offset=tensor.offset, threshold=tensor.threshold)
        if tuple(entry.shape.dim) != tensor.shape:
            entry.shape.dim[:] = tensor.shape


def _put(message: Any, **values: object) -> None:
    """Set the fields whose value differs from what the message already says (its stored or default value)."""
    for name, value in values.items():
        if getattr(message, name) != value:
            setattr(message, name, value)
