"""CONV commands on device memory: runs, unified buffer, placement of results (dv.md 1.6).

Decisions where the facts leave room, each the reading that all public tests agree with:

* With `output_mode` 1 the addend belongs to results that go to external memory; several such runs take consecutive
  parts of `eltwise_buf`, as their results do of `output_buf`.
* A batch of N samples takes N consecutive inputs, outputs and addends.

What has no documented meaning is refused (`unknown_meaning`), never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bmcompiler.backends.dv.arithmetic.accumulate import Accumulator
from bmcompiler.backends.dv.arithmetic.run_model import RunWeights, has_no_window, run_result
from bmcompiler.backends.dv.driver.commands import Buf, ConvCommand, Run
from bmcompiler.backends.dv.driver.geometry import (
    Extent,
    Link,
    after_conv,
    after_pool,
    chain,
    effective_kernel,
    weight_bytes,
)
from bmcompiler.backends.dv.driver.structs import Activation, OutputMode, Pool, WeightFormat
from bmcompiler.backends.dv.formats.layout import from_whc8, into_whc8
from bmcompiler.backends.dv.formats.packing import unpack_conv, unpack_dilated
from bmcompiler.errors import SimulatorError, UnsupportedError
from bmcompiler.numeric.arrays import Array, Bytes, Halves

Memory = Callable[[int], Bytes]
"""All bytes of the device memory behind a handle."""

_TRANSPOSED = 0x8000  # of input_circular_offset
_LRN_MODE, _LRN_SCALE = 3, 0xF00  # enabled with the power function; the scale of squares changes no sum
_ENABLES = (0, 1, 3, 5, 7)


def view(memory: Memory, name: str, buf: Buf, size: int, dtype: Any = np.uint8) -> Array:
    """`size` elements of a buffer. Raises SimulatorError when they are not all inside its memory."""
    data = memory(buf.mem)
    end = buf.offs + size * np.dtype(dtype).itemsize
    if end > data.size:
        raise SimulatorError(f"{name} ends {end - data.size} bytes after its memory of {data.size} bytes")
    return data[buf.offs : end].view(dtype)


def unknown_meaning(command: ConvCommand) -> str | None:
    """What a command asks for that no public source defines, or None (dv.md 9)."""
    wrong: list[tuple[object, str]] = [
        (command.u8_table.mem, "u8 input: the channel order of the conversion table is not documented"),
        (command.z > 1, f"z {command.z}: 3-D maps are not documented"),
        (command.input_circular_offset & _TRANSPOSED, "input_circular_offset 0x8000 is not documented"),
        (command.output_mode not in (OutputMode.CONCAT, OutputMode.ADD), f"output_mode {command.output_mode}"),
        (
            command.output_mode == OutputMode.ADD and not command.eltwise_buf.mem,
            "output_mode 1 without eltwise_buf: adding from the unified buffer is not documented",
        ),
    ]
    for index, link in enumerate(chain(command)):
        wrong += [(holds, f"run {index}: {text}") for holds, text in _unknown_of_run(link)]
    return next((text for holds, text in wrong if holds), None)


_FORMAT_0 = 0  # random access blocks: programs have it with weights packed as fp16 (dv.md, end)


def _unknown_of_run(link: Link) -> Iterator[tuple[object, str]]:
    run = link.run
    yield run.conv_enable not in _ENABLES, f"conv_enable {run.conv_enable}"
    yield run.has_conv and run.pz > 1, f"pz {run.pz}: 3-D kernels are not documented"
    yield run.has_conv and run.weight_fmt not in (_FORMAT_0, *WeightFormat), f"weight_fmt {run.weight_fmt}"
    yield run.actfunc not in tuple(Activation), f"actfunc {run.actfunc}"
    yield run.actfunc == Activation.PRELU and not run.has_conv, "PReLU without a convolution has no slopes"
    yield run.has_lrn and run.lrn & ~_LRN_SCALE != _LRN_MODE, f"lrn 0x{run.lrn:x}: only 0x503 has a documented meaning"
    same = not run.has_conv or run.is_depthwise
    yield same and run.m != link.source.c, f"m {run.m} without a full convolution of {link.source.c} channels"


class _Step(NamedTuple):
    """A run with its memory bound; `outputs` and `addends` have a row per sample, None = unified buffer, no addend."""

    run: Run
    from_command: bool
    weights: Bytes | None
    channels: int
    outputs: Halves | None
    addends: Halves | None
    added: Extent  # what the addend has the shape of


class ConvPlan:
    """A CONV command whose memory is resolved; `run()` executes it, as often as wanted.

    Raises UnsupportedError for what is not documented, SimulatorError for memory outside a buffer.
    """

    def __init__(self, command: ConvCommand, memory: Memory, accumulator: Accumulator = Accumulator.EXACT) -> None:
        unknown = unknown_meaning(command)
        if unknown:
            raise UnsupportedError(f"the simulator cannot run {unknown}")
        self._accumulator = accumulator
        self._extent = Extent(command.w, command.h, 1, command.c)
        self._samples = command.samples
        count = self._samples * self._extent.elements
        self._inputs = view(memory, "input_buf", command.input_buf, count, np.float16).reshape(self._samples, -1)
        self._steps = self._bind(command, memory)

    def _bind(self, command: ConvCommand, memory: Memory) -> list[_Step]:
        links = chain(command)
        added = [_before_max_pool(link) for link in links]
        for index, link in enumerate(links):
            if not _windows_fit(link):
                raise SimulatorError(f"run {index}: the kernel or pooling window is larger than its padded input")
        external = [link.external for link in links]
        outputs = self._rows("output_buf", command.output_buf, [link.out for link in links], external, memory)
        addends: list[Halves | None] = [None] * len(links)
        if command.output_mode == OutputMode.ADD:
            addends = self._rows("eltwise_buf", command.eltwise_buf, added, external, memory)
        steps = []
        for index, link in enumerate(links):
            size = weight_bytes(link.run, link.source.c)
            weights = view(memory, f"run {index}: weight_buf", link.run.weight_buf, size) if link.run.has_conv else None
            channels = 1 if link.run.is_depthwise else link.source.c
            from_command = command.reads_command_input(index)
            steps.append(_Step(link.run, from_command, weights, channels, outputs[index], addends[index], added[index]))
        return steps

    def _rows(
        self, name: str, buf: Buf, extents: list[Extent], external: list[bool], memory: Memory
    ) -> list[Halves | None]:
        """The parts of a buffer that belong to the runs which use external memory, one after the other."""
        total = sum(extent.elements for extent, used in zip(extents, external) if used)
        table = view(memory, name, buf, self._samples * total, np.float16).reshape(self._samples, total)
        rows: list[Halves | None] = []
        start = 0
        for extent, used in zip(extents, external):
            rows.append(table[:, start : start + extent.elements] if used else None)
            start += extent.elements if used else 0
        return rows

    def run(self) -> None:
        """Execute once; weights are read from memory each time."""
        weights = [
            None if step.weights is None else _unpack(step.run, step.channels, step.weights) for step in self._steps
        ]
        for samples in self._together():
            buffer: Halves | None = None
            for step, used in zip(self._steps, weights):
                x = _map(self._inputs[samples], self._extent) if step.from_command or buffer is None else buffer
                addend = None if step.addends is None else _map(step.addends[samples], step.added)
                buffer = run_result(step.run, x, used, addend, self._accumulator)
                if step.outputs is None:
                    continue
                outputs = step.outputs[samples]
                if len(outputs) > 1:
                    outputs[...] = buffer[:, 0]
                else:
                    into_whc8(buffer, outputs[0])

    def _together(self) -> Iterator[slice]:
        """Samples that are computed at a time: all where each is a pixel and no run looks at others, else one."""
        vectors = self._extent.w == self._extent.h == 1 and all(has_no_window(step.run) for step in self._steps)
        step = self._samples if vectors else 1
        return (slice(first, first + step) for first in range(0, self._samples, step))


def _map(samples: Halves, extent: Extent) -> Halves:
    """The [w][h][c] map of one sample, or of several of one pixel each as its columns."""
    if len(samples) > 1:
        return samples.reshape(len(samples), 1, extent.c)
    return from_whc8(samples[0], extent.w, extent.h, extent.c)


def _windows_fit(link: Link) -> bool:
    """Kernel and window have a position; the driver's divisions can give 1 where they have none."""
    run, middle = link.run, after_conv(link.source, link.run)
    smallest = [link.source.w, link.source.h, middle.w, middle.h, link.out.w, link.out.h]
    if run.has_conv and not run.is_deconv:
        span, pad = effective_kernel(run), run.conv_pad
        smallest += [
            pad.left + link.source.w + pad.right - span.x + 1,
            pad.top + link.source.h + pad.bottom - span.y + 1,
        ]
    if run.pool_enable in (Pool.MAX, Pool.AVERAGE):
        size, pad = run.pool_size, run.pool_pad
        smallest += [pad.left + middle.w + pad.right - size.x + 1, pad.top + middle.h + pad.bottom - size.y + 1]
    return min(smallest) >= 1


def _before_max_pool(link: Link) -> Extent:
    """The map to which an addend is added: after all but max pooling (dv.md 1.6)."""
    middle = after_conv(link.source, link.run)
    return middle if link.run.pool_enable == Pool.MAX else after_pool(middle, link.run)


def _unpack(run: Run, channels: int, data: Bytes) -> RunWeights:
    kernel = (channels, run.kernel.x, run.kernel.y, run.m, run.is_quantized)
    found = unpack_dilated(data, *kernel) if run.is_dilated else unpack_conv(data, *kernel, run.has_prelu_stream)
    prelu = None if found.prelu is None else found.prelu.view(np.float16)
    return RunWeights(found.weights.view(np.float16), found.bias.view(np.float16), prelu)
