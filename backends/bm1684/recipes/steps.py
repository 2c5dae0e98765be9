"""Recorded recipes: what they compute bit for bit, how many planes they need, and their commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684 import fp32
from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.isa import Eu, Precision, StrideCode, Task
from bmcompiler.backends.bm1684.layout import Shape, Strides, aligned_strides, channel_rows
from bmcompiler.backends.bm1684.recipes.machine import Immediate, Machine, Operand, Register, Step
from bmcompiler.backends.bm1684.tables import table
from bmcompiler.blas import in_parallel
from bmcompiler.errors import EncodingError

Words = NDArray[Any]
Range = tuple[int, int]
_BLOCK = 1 << 14  # elements whose registers stay in the cache
_BIT_UNITS = (Eu.AND, Eu.OR, Eu.XOR, Eu.SHIFT, Eu.SELECT_EQ, Eu.COPY)
_PER_COMMAND = 16  # elements of a lane in two cycles (bm1684.md 12)
_RSQRT_OPERATIONS = 12


class Tiu(Protocol):
    """The part of a program builder that recipes use."""

    def tiu(self, reads: Sequence[Range], writes: Sequence[Range], **fields: int) -> Any:
        """Add a TIU command; ranges are bytes of a lane, of L2 from `CHIP.l2_window` on."""


class Plane(NamedTuple):
    """A tile in local memory: byte offset in the lane, strides in words; None = the aligned default layout."""

    address: int
    strides: Strides | None = None

    def range(self, shape: Shape) -> Range:
        """Bytes of a lane that a tile of `shape` lies in."""
        n, c, h, w = shape
        sizes = (n, channel_rows(0, c), h, w)
        last = sum((size - 1) * stride for size, stride in zip(sizes, self.strides or aligned_strides(shape)))
        return self.address, self.address + 4 * (last + 1)


@dataclass(frozen=True)
class Steps:
    """A straight-line program of TIU commands over registers; the last step gives the result."""

    inputs: int
    steps: tuple[Step, ...]

    def evaluate(self, *arrays: Words) -> Words:
        """The result as float32, bit for bit what the commands compute.

        Args:
            arrays: one per input, of 32-bit elements, broadcasting as numpy does.
        """
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        if any(a.shape != shape for a in arrays):
            with np.errstate(all="ignore"):
                return np.ascontiguousarray(np.broadcast_to(_run(self, arrays), shape))
        flat = [np.ascontiguousarray(a).reshape(-1) for a in arrays]
        out = np.empty(flat[0].size, np.float32)

        def block(first: int) -> None:
            part = slice(first, first + _BLOCK)
            with np.errstate(all="ignore"):  # holds for one thread
                out[part] = _run(self, [a[part] for a in flat])

        in_parallel([partial(block, first) for first in range(0, out.size, _BLOCK)])
        return out.reshape(shape)

    def integers(self, *arrays: Words) -> NDArray[np.int32]:
        """`evaluate` of a recipe whose result is an integer."""
        return self.evaluate(*arrays).view(np.int32)

    @property
    def registers(self) -> int:
        """Planes of scratch memory that the commands need besides inputs and result."""
        return max((place for place in self._places if place is not None), default=0)

    @cached_property
    def _places(self) -> tuple[int, ...]:
        """Where the result of each step goes: 0 = the plane of the result, k = scratch plane k - 1."""
        last_use = list(range(self.inputs + len(self.steps)))
        for number, step in enumerate(self.steps):
            for source in step.sources:
                if isinstance(source, Register):
                    last_use[source.number] = self.inputs + number
        end = self.inputs + len(self.steps) - 1
        kept = set() if self.steps[-1].in_place else {s for s in self.steps[-1].sources if isinstance(s, Register)}
        places: list[int] = []
        taken: dict[int, int] = {}  # plane -> register
        for number, step in enumerate(self.steps, self.inputs):
            ready = number if step.in_place else number - 1
            taken = {plane: held for plane, held in taken.items() if last_use[held] > ready}
            plane = 1 if number != end and Register(number) in kept else 0
            while plane in taken:
                plane += 1
            taken[plane] = number
            places.append(plane)
        return tuple(places)

    def needs_default_layout(self, number: int) -> bool:
        """Whether a command without stride registers reads input `number`."""
        return any(Register(number) in step.sources for step in self.steps if step.task != Task.TENSOR)

    def cycles(self, shape: Shape) -> int:
        """Estimated TIU cycles for a tile (bm1684.md 12)."""
        n, c, h, w = shape
        passes = 2 * n * channel_rows(0, c) * -(-h * w // _PER_COMMAND)
        return passes * sum(map(_operations, self.steps))

    def emit(
        self,
        build: Tiu,
        shape: Shape,
        inputs: Sequence[Plane | int],
        output: Plane | int,
        scratch: Sequence[int] = (),
    ) -> None:
        """Emit the commands for one tile of `shape`.

        Args:
            inputs: where they lie; a plain number is an address with the default layout. Zero strides broadcast.
            output: where the result goes; it must not overlap an input.
            scratch: addresses of `registers` planes in the default layout.
        Raises:
            EncodingError: too few scratch planes, or strides for a command that knows only the default layout.
        """
        if len(scratch) < self.registers:
            raise EncodingError(f"the recipe needs {self.registers} scratch planes, got {len(scratch)}")
        planes = [_plane(output), *(Plane(address) for address in scratch)]
        held = [_plane(p) for p in inputs] + [planes[place] for place in self._places]
        for number, step in enumerate(self.steps, self.inputs):
            _COMMANDS[step.task](build, step, shape, held, held[number])


def record(recipe: Callable[..., Register], inputs: int, *arguments: Any) -> Steps:
    """The steps of `recipe(machine, *registers, *arguments)` with so many input registers."""
    machine = Machine(inputs)
    result = recipe(machine, *map(Register, range(inputs)), *arguments)
    if result.number != inputs + len(machine.steps) - 1 or not machine.steps:
        machine.copy(result)
    return Steps(inputs, tuple(machine.steps))


def _plane(place: Plane | int) -> Plane:
    return place if isinstance(place, Plane) else Plane(place)


def _operations(step: Step) -> int:
    if step.unit == Eu.TAYLOR:
        return 2 * step.terms
    return {Eu.RSQRT: _RSQRT_OPERATIONS, Eu.DIVIDE: _RSQRT_OPERATIONS}.get(step.unit, 1)


def _run(program: Steps, arrays: Sequence[Words]) -> Words:
    values = list(arrays)
    for step in program.steps:
        values.append(_evaluate(step, [_value(source, values) for source in step.sources]))
    return _as_float(values[-1])


def _value(source: Operand, values: list[Words]) -> Words:
    if isinstance(source, Register):
        return values[source.number]
    return np.array([source.bits], "<u4").view(np.float32)


def _as_float(words: Words) -> NDArray[np.float32]:
    return words if words.dtype == np.float32 else np.ascontiguousarray(words).view(np.float32)


def _as_int(words: Words) -> NDArray[np.int32]:
    return words if words.dtype == np.int32 else np.ascontiguousarray(words).view(np.int32)


_FLOAT: dict[Eu, Callable[[Words, Words], Words]] = {
    Eu.ADD: fp32.add,
    Eu.SUB: fp32.subtract,
    Eu.MUL: fp32.multiply,
    Eu.DIVIDE: fp32.divide,
    Eu.MAX: fp32.maximum,
    Eu.MIN: fp32.minimum,
}
_BITS: dict[Eu, Callable[[Words, Words], Words]] = {
    Eu.AND: np.bitwise_and,
    Eu.OR: np.bitwise_or,
    Eu.XOR: np.bitwise_xor,
}


def _evaluate(step: Step, sources: list[Words]) -> Words:
    unit = step.unit
    if step.task == Task.LUT:
        return table(step.table, step.terms)[_as_int(sources[0]) & (step.terms - 1)]
    if step.task == Task.SFU:
        return _special(step, sources[0])
    if step.task == Task.COMPARE:
        a, b, c, d = map(_as_float, sources)
        return _as_float(np.where(fp32.flush(a) > fp32.flush(b), _as_int(c), _as_int(d)))
    if unit in _FLOAT:
        return _FLOAT[unit](_as_float(sources[0]), _as_float(sources[1]))
    if unit in _BITS:
        return _BITS[unit](_as_int(sources[0]), _as_int(sources[1]))
    if unit == Eu.SHIFT:
        return _shifted(step, _as_int(sources[0]), int(_as_int(sources[1])[0]))
    if unit == Eu.COPY:
        return sources[0]
    chosen = np.array([step.chosen], "<u4").view(np.int32)
    if unit == Eu.SELECT_EQ:
        return np.where(_as_int(sources[0]) == _as_int(sources[1]), chosen, np.int32(0))
    return np.where(fp32.flush(_as_float(sources[0])) > fp32.flush(_as_float(sources[1])), chosen, np.int32(0))


def _special(step: Step, source: Words) -> Words:
    if step.unit == Eu.TAYLOR:
        return fp32.taylor(_as_float(source), table(step.table, step.terms))
    if step.unit == Eu.RSQRT:
        return fp32.rsqrt(_as_float(source))
    if step.unit == Eu.FP32_TO_INT:
        return fp32.to_int(_as_float(source))
    return fp32.nearest_exponent(_as_int(source))


def _shifted(step: Step, words: NDArray[np.int32], places: int) -> Words:
    if places >= 0:
        return words << np.int32(places)
    if step.arithmetic:
        return words >> np.int32(-places)
    return words.view(np.uint32) >> np.uint32(-places)


def _sizes(shape: Shape) -> dict[str, int]:
    return {f"res0_{axis}": size for axis, size in zip("nchw", shape)}


def _strides(name: str, strides: Strides) -> dict[str, int]:
    return {f"{name}_{axis}_str": stride & 0xFFFF_FFFF for axis, stride in zip("nchw", strides)}


def _operand(name: str, source: Operand, held: list[Plane]) -> dict[str, int]:
    """Address of a tile, or an immediate."""
    if isinstance(source, Immediate):
        return {f"{name}_addr": source.bits, f"opt_{name}_const": 1}
    return {f"{name}_addr": local_address(held[source.number].address)}


def _reads(step: Step, shape: Shape, held: list[Plane]) -> list[Range]:
    tiles = [held[s.number].range(shape) for s in step.sources if isinstance(s, Register)]
    if CHIP.l2_free[0] <= step.table < CHIP.l2_free[1]:  # constant tables never change
        tiles.append((CHIP.l2_window + step.table, CHIP.l2_window + step.table + 4 * step.terms))
    return tiles


def _tensor(build: Tiu, step: Step, shape: Shape, held: list[Plane], target: Plane) -> None:
    """Task 3: every operand has stride registers."""
    names = ("opd0", "opd1")[: len(step.sources)]
    fields = {**_sizes(shape), "res0_addr": local_address(target.address), "short_res0_str": StrideCode.EXPLICIT}
    default = aligned_strides(shape)
    fields |= _strides("res0", target.strides or default)
    for name, source in zip(names, step.sources):
        fields |= _operand(name, source, held) | {f"short_{name}_str": StrideCode.EXPLICIT}
        if isinstance(source, Register):
            fields |= _strides(name, held[source.number].strides or default)
    if step.unit in _BIT_UNITS:
        fields |= {f"opt_{name}_prec": Precision.INT32 for name in ("res0", "opd0", "opd1", "opd2")}
    if step.unit in (Eu.SELECT_GT, Eu.SELECT_EQ):
        fields |= {"opd2_addr": step.chosen, "opt_opd2_const": 1, "tsk_opd_num": 3}
    if step.unit == Eu.COPY:
        fields["tsk_opd_num"] = 1
    build.tiu(
        reads=_reads(step, shape, held),
        writes=[target.range(shape)],
        tsk_typ=step.task,
        tsk_eu_typ=step.unit,
        opt_shift_typ=int(step.arithmetic),
        **fields,
    )


def _need_default_layout(step: Step, held: list[Plane], target: Plane) -> None:
    tiles = [target, *(held[s.number] for s in step.sources if isinstance(s, Register))]
    if any(tile.strides is not None for tile in tiles):
        raise EncodingError(f"task {int(step.task)} works on tiles in the aligned default layout only")


def _special_function(build: Tiu, step: Step, shape: Shape, held: list[Plane], target: Plane) -> None:
    """Tasks 6 and 9: default layouts, tables by their offset in L2."""
    _need_default_layout(step, held, target)
    fields = {**_sizes(shape), "res0_addr": local_address(target.address), **_operand("opd0", step.sources[0], held)}
    if step.task == Task.LUT:
        fields |= {"opd1_addr": step.table, "opd1_h": step.terms // CHIP.execution_units}
    elif step.unit == Eu.TAYLOR:
        fields |= {"opd1_addr": step.table, "opd1_n": step.terms}
    elif step.unit != Eu.RSQRT:
        fields["opt_res0_prec"] = Precision.INT32
    build.tiu(
        reads=_reads(step, shape, held),
        writes=[target.range(shape)],
        tsk_typ=step.task,
        tsk_eu_typ=step.unit,
        **fields,
    )


def _choice(build: Tiu, step: Step, shape: Shape, held: list[Plane], target: Plane) -> None:
    """Task 13: default layouts, but the stride registers of the first operand must hold them (bm1684.md 6.9)."""
    _need_default_layout(step, held, target)
    address = local_address(target.address)
    fields = {**_sizes(shape), **_strides("opd0", aligned_strides(shape)), "res0_addr": address, "res1_addr": address}
    for name, source in zip(("opd0", "opd1", "opd2", "opd3"), step.sources):
        fields |= _operand(name, source, held)
    build.tiu(
        reads=_reads(step, shape, held),
        writes=[target.range(shape)],
        tsk_typ=step.task,
        tsk_eu_typ=step.unit,
        tsk_opd_num=0,
        **fields,
    )


_COMMANDS: dict[Task, Callable[[Tiu, Step, Shape, list[Plane], Plane], None]] = {
    Task.TENSOR: _tensor,
    Task.COMPARE: _choice,
    Task.SFU: _special_function,
    Task.LUT: _special_function,
}
