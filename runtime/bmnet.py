"""Registered networks of the BM runtime: programs, weights and activations in device memory (bm1880.md 10.3, 13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bmcompiler import bmodel
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.bmodel import BModel, TensorInfo
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command
from bmcompiler.errors import UnsupportedError
from bmcompiler.files.store import StrPath
from bmcompiler.numeric.arrays import Array, Bytes
from bmcompiler.runtime.bmdevice import GMEM_SIZE, RUNTIME, BmContext, BmErr, BmMem, BmRuntimeError
from bmcompiler.runtime.simulator.bm1880.plan import compile_plan
from bmcompiler.runtime.simulator.plan import Plan
from bmcompiler.sizes.choice import Fit, fit, why_not
from bmcompiler.sizes.note import Size, decoded

ReadBuffer = bytes | bytearray | memoryview | Array
WriteBuffer = bytearray | memoryview | Array


@RUNTIME.struct
@dataclass(frozen=True)
class BmNetInfo:
    """A compiled network in parts, as `bmnet_register` takes it; sizes and offsets in bytes.

    Inputs start at neuron offset 0; outputs are `output_size` bytes at `output_offset`.
    """

    c_name: ClassVar[str] = "bmnet_info_t"
    batch_size: int
    weight: bytes
    cmdbuf: bytes
    neuron_size: int
    input_size: int
    output_offset: int
    output_size: int

    @property
    def weight_size(self) -> int:
        """Bytes of the weights."""
        return len(self.weight)

    @property
    def cmdbuf_size(self) -> int:
        """Bytes of the command buffer."""
        return len(self.cmdbuf)


@dataclass(frozen=True)
class BmNetOutputInfo:
    """Outputs of the selected program, in the order of the output buffer; sizes in bytes."""

    output_size: int
    output_num: int
    name_array: tuple[str, ...]
    shape_array: tuple[tuple[int, ...], ...]
    threshold_array: tuple[float, ...]
    size_array: tuple[int, ...]
    fmt_array: tuple[int, ...]


@dataclass(frozen=True)
class BmNetInputInfo:
    """Inputs of the selected program; sizes in bytes."""

    input_size: int
    input_num: int
    shape_array: tuple[tuple[int, ...], ...]
    threshold_array: tuple[float, ...]
    size_array: tuple[int, ...]
    fmt_array: tuple[int, ...]


@dataclass(frozen=True)
class BmNetModelInfo:
    """A network, with inputs and outputs of each of its programs."""

    net_name: str
    chip: int
    input_info_array: tuple[BmNetInputInfo, ...]
    output_info_array: tuple[BmNetOutputInfo, ...]

    @property
    def command_num(self) -> int:
        """How many programs there are."""
        return len(self.input_info_array)


@RUNTIME.handle("bmnet_t")
class BmNet:
    """A network on a context. One program (input shape) is selected at a time, at first the first one.

    `sizes`: which input shapes are filled up to those of the next larger program.

    `weights[i]` is the memory of weight set i, `neuron` that of the activations; both are None until memory is imported
    when the network was registered without.
    """

    def __init__(
        self,
        ctx: BmContext,
        commands: Sequence[Command],
        weights: Sequence[ReadBuffer],
        allocate: bool,
        sizes: Sequence[Size] = (),
        name: str = "",
    ) -> None:
        self._memories = ctx.chip()
        if not commands:
            raise BmRuntimeError(BmErr.DATA, "the model has no program")
        self.ctx, self.commands, self.name = ctx, tuple(commands), name
        self._sizes = tuple(sizes)
        self._take(Fit(0, tuple(one.shape for one in self.commands[0].inputs), {}, {}))
        self.closed = False
        self._owned: list[BmMem] = []
        self._plans: dict[int, Plan] = {}
        self.weights: list[BmMem | None] = [None] * len(weights)
        self._weight_sizes = [_array(data).nbytes for data in weights]
        self.neuron: BmMem | None = None
        if allocate:
            self._allocate(weights)

    def _allocate(self, weights: Sequence[ReadBuffer]) -> None:
        for index, data in enumerate(weights):
            if self._weight_sizes[index]:
                mem = self._own(self._weight_sizes[index])
                mem.data[:] = readable(data, mem.size)
                self.weights[index] = mem
        self.neuron = self._own(max(1, *(command.neuron_size for command in self.commands)))

    def _own(self, size: int) -> BmMem:
        mem = self.ctx.allocate(size)
        self._owned.append(mem)
        return mem

    @property
    def selected(self) -> int:
        """Number of the selected program."""
        return self._fit.program

    @property
    def command(self) -> Command:
        """The selected program."""
        self.check()
        return self.commands[self.selected]

    def ended(self) -> str:
        """Why it cannot be used any more. The memory of a context is another one after every bind."""
        if self.closed:
            return "was cleaned up"
        return "" if self.ctx.memories is self._memories else "ended with the binding of its context"

    def check(self) -> None:
        """Refuse a network that has ended."""
        if self.ended():
            raise BmRuntimeError(BmErr.UNINITIALIZED, f"the network {self.ended()}")

    def select(self, *shapes: Sequence[int]) -> None:
        """Select the program whose first inputs have `shapes`, or the next larger. Raises BmRuntimeError."""
        self.check()
        wanted = [tuple(int(size) for size in shape) for shape in shapes]
        programs = [[one.shape for one in command.inputs] for command in self.commands]
        given = [*wanted, *[None] * (len(programs[0]) - len(wanted))]
        found = fit(programs, self._sizes, given)
        if found is None:
            known = ", ".join(str([list(shape) for shape in one]) for one in programs)
            reason = f"no program takes input shapes {[list(shape) for shape in wanted]}; there are {known}"
            why = why_not(self._sizes, programs, given, [one.name for one in self.commands[0].inputs])
            raise BmRuntimeError(BmErr.INVALID_ARGUMENT, f"{reason}; {why}" if why else reason)
        shapes_of = tuple(one.shape for one in self.commands[found.program].inputs)
        self._take(replace(found, shapes=shapes_of))

    def _take(self, fit: Fit) -> None:
        """Select a program; every inference asks for tensors and bytes of those shapes, which are found once."""
        command, self._fit = self.commands[fit.program], fit
        ins, outs = enumerate(command.inputs), enumerate(command.outputs)
        self._inputs = tuple(replace(one, shape=fit.input_shape(index, one.shape)) for index, one in ins)
        self._outputs = tuple(replace(one, shape=fit.output_shape(index, one.shape)) for index, one in outs)
        self.input_bytes, self.output_bytes = (sum(one.size for one in side) for side in (self._inputs, self._outputs))

    def weight_memory(self) -> BmMem | None:
        """Weights of the selected program; None when it has none, or none yet."""
        index = self.command.weight_index
        return self.weights[index] if index < len(self.weights) else None

    def _weight_size(self) -> int:
        index = self.command.weight_index
        return self._weight_sizes[index] if index < len(self._weight_sizes) else 0

    def import_weight(self, mem: BmMem) -> None:
        """Use `mem`, filled by the caller, as weights of the selected program."""
        index = self.command.weight_index
        self._check_room("weights", mem, self._weight_size())
        if index < len(self.weights):
            self.weights[index] = mem
            self._plans.clear()

    def import_neuron(self, mem: BmMem) -> None:
        """Use `mem` for the activations."""
        self.check()
        self._check_room("activations", mem, max(command.neuron_size for command in self.commands))
        self.neuron = mem
        self._plans.clear()

    def _check_room(self, what: str, mem: BmMem, needed: int) -> None:
        mem.need(self.ctx.device())
        if mem.size < needed:
            reason = f"the {what} need {needed} bytes, the memory has {mem.size}"
            raise BmRuntimeError(BmErr.INVALID_ARGUMENT, reason)

    def neuron_memory(self) -> BmMem:
        """Memory of the activations. Raises BmRuntimeError before it is imported."""
        self.check()
        if self.neuron is None:
            raise BmRuntimeError(BmErr.UNINITIALIZED, "the network has no activation memory: import it first")
        self.neuron.need(self.ctx.device())
        return self.neuron

    def input_memory(self) -> BmMem:
        """Window on the inputs."""
        return self._window(self.command.inputs)

    def output_memory(self) -> BmMem:
        """Window on the outputs, from the first to the last byte of any."""
        return self._window(self.command.outputs)

    def _window(self, tensors: Sequence[TensorInfo]) -> BmMem:
        if self._fit.given:
            reason = "the inputs are smaller than the program: only copies of inputs and outputs are filled up and cut"
            raise BmRuntimeError(BmErr.INVALID_ARGUMENT, reason)
        first = min(info.offset for info in tensors)
        return self.neuron_memory().cut(first, max(info.offset + info.size for info in tensors) - first)

    def load_input(self, data: ReadBuffer) -> None:
        """Copy the inputs, one behind the other, to the device."""
        source, done = readable(data, self.input_bytes), 0
        for index, (given, info) in enumerate(zip(self._inputs, self.command.inputs)):
            part = source[done : done + given.size]
            if given.shape != info.shape:
                part = self._fit.filled(index, part.view(info.stored).reshape(given.shape)).reshape(-1).view(np.uint8)
            self.neuron_memory().cut(info.offset, info.size).data[:] = part
            done += given.size

    def store_output(self, buffer: WriteBuffer) -> None:
        """Copy the outputs, one behind the other in list order, to `buffer`."""
        target, done = writable(buffer, self.output_bytes), 0
        for index, (wanted, info) in enumerate(zip(self._outputs, self.command.outputs)):
            part = self.neuron_memory().cut(info.offset, info.size).data
            if wanted.shape != info.shape:
                part = self._fit.cut(index, part.view(info.stored).reshape(info.shape)).reshape(-1).view(np.uint8)
            target[done : done + wanted.size] = part
            done += wanted.size

    def load_commands(self, cmdbuf: bytes) -> None:
        """Other commands for the selected program."""
        found = replace(self.command, cmdbuf=cmdbuf)
        self.commands = (*self.commands[: self.selected], found, *self.commands[self.selected + 1 :])
        self._plans.pop(self.selected, None)

    def model_info(self) -> BmNetModelInfo:
        """Inputs and outputs of all programs, of the programs' own shapes."""
        self.check()
        ins = tuple(_input_info(one.inputs) for one in self.commands)
        outs = tuple(_output_info(one.outputs) for one in self.commands)
        return BmNetModelInfo(self.name, CHIP.version, ins, outs)

    def output_info(self) -> BmNetOutputInfo:
        """What the output buffer holds."""
        self.check()
        return _output_info(self._outputs)

    def input_info(self) -> BmNetInputInfo:
        """What the input buffer holds."""
        self.check()
        return _input_info(self._inputs)

    def run(self) -> None:
        """Execute the selected program on what is in device memory."""
        with self.ctx.lock:
            command, neuron, weight = self.command, self.neuron_memory(), self.weight_memory()
            if weight is None and self._weight_size():
                raise BmRuntimeError(BmErr.UNINITIALIZED, "the network has no weight memory: import it first")
            if weight is not None:
                weight.need(self.ctx.device())
            if self.selected not in self._plans:
                base = weight.address if weight is not None else 0
                self._plans[self.selected] = compile_plan(command.cmdbuf, self.ctx.chip(), neuron.address, base)
            self._plans[self.selected].run()

    def close(self) -> None:
        """Free the memory that registration allocated."""
        self.check()
        self.closed = True
        self._plans.clear()
        for mem in self._owned:
            if not mem.freed:
                self.ctx.free(mem)


def _output_info(outputs: Sequence[TensorInfo]) -> BmNetOutputInfo:
    sizes = tuple(info.size for info in outputs)
    return BmNetOutputInfo(
        output_size=sum(sizes),
        output_num=len(outputs),
        name_array=tuple(info.name for info in outputs),
        shape_array=tuple(info.shape for info in outputs),
        threshold_array=tuple(info.threshold for info in outputs),
        size_array=sizes,
        fmt_array=tuple(info.fmt for info in outputs),
    )


def _input_info(inputs: Sequence[TensorInfo]) -> BmNetInputInfo:
    sizes = tuple(info.size for info in inputs)
    return BmNetInputInfo(
        input_size=sum(sizes),
        input_num=len(inputs),
        shape_array=tuple(info.shape for info in inputs),
        threshold_array=tuple(info.threshold for info in inputs),
        size_array=sizes,
        fmt_array=tuple(info.fmt for info in inputs),
    )


def net_of_file(ctx: BmContext, path: StrPath) -> BmNet:
    """Register a model file. Raises FileFormatError, UnsupportedError (another chip), OSError."""
    try:
        return net_of_model(ctx, bmodel.load(path))
    except UnsupportedError as error:
        raise error.located(file=path) from None


def net_of_model(ctx: BmContext, model: BModel) -> BmNet:
    """Register a model. Raises UnsupportedError for one of another chip."""
    if not isinstance(model, Bm1880Model):
        raise UnsupportedError(f"the file is a model for {model.target}, this device is a bm1880")
    return BmNet(
        ctx, model.commands, model.weights, allocate=True, sizes=decoded(model.stages()[0].sizes), name=model.net_name
    )


def net_of_info(ctx: BmContext, info: BmNetInfo, allocate: bool) -> BmNet:
    """Register a network given in parts. Raises BmRuntimeError when inputs or outputs leave the activations."""
    if info.batch_size < 1 or min(info.input_size, info.output_size) < 1 or info.output_offset < 0:
        raise BmRuntimeError(BmErr.INVALID_ARGUMENT, "batch, input and output sizes must be positive")
    if max(info.input_size, info.output_offset + info.output_size) > info.neuron_size:
        raise BmRuntimeError(BmErr.INVALID_ARGUMENT, f"input or output leaves {info.neuron_size} bytes of activations")
    if info.input_size % info.batch_size or info.output_size % info.batch_size:
        raise BmRuntimeError(BmErr.INVALID_ARGUMENT, f"sizes are not those of {info.batch_size} samples")
    if info.neuron_size > GMEM_SIZE:
        reason = f"activations of {info.neuron_size} bytes: device memory has {GMEM_SIZE}"
        raise BmRuntimeError(BmErr.NOMEM, reason)
    batch = info.batch_size
    source = TensorInfo("input", (batch, info.input_size // batch, 1, 1))
    result = TensorInfo("output", (batch, info.output_size // batch, 1, 1), offset=info.output_offset)
    return BmNet(ctx, [Command([source], [result], info.cmdbuf, info.neuron_size)], [info.weight], allocate)


def readable(data: ReadBuffer, size: int) -> Bytes:
    """The first `size` bytes of a buffer. Raises BmRuntimeError when it is shorter."""
    source = np.ascontiguousarray(_array(data)).reshape(-1).view(np.uint8)
    return _first(source, size)


def writable(buffer: WriteBuffer, size: int) -> Bytes:
    """The first `size` bytes of a buffer, to be written. Raises BmRuntimeError when it is shorter or cannot be."""
    array = _array(buffer)
    if not (array.flags.writeable and array.flags.c_contiguous):
        raise BmRuntimeError(BmErr.INVALID_ARGUMENT, "the buffer cannot be written, or is not contiguous")
    return _first(array.reshape(-1).view(np.uint8), size)


def _array(data: ReadBuffer) -> Array:
    try:
        array = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise BmRuntimeError(BmErr.INVALID_ARGUMENT, f"the buffer cannot be used: {error}") from error
    if array.dtype.hasobject:
        raise BmRuntimeError(BmErr.INVALID_ARGUMENT, "the buffer holds Python objects, not numbers")
    return array


def _first(array: Bytes, size: int) -> Bytes:
    if not 0 <= size <= array.size:
        raise BmRuntimeError(BmErr.INVALID_ARGUMENT, f"the buffer has {array.size} bytes, {size} are needed")
    return array[:size]
