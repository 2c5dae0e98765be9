"""The commands of a run of device ops, and where its maps lie in device memory, by their lifetimes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bmcompiler.backends.dv.kernels.base import RunKernel
from bmcompiler.backends.dv.kernels.concat import ConcatKernel, copy_part
from bmcompiler.backends.dv.lowering.build import MapPlace, extent_of, map_bytes, samples_of
from bmcompiler.backends.dv.lowering.chains import CommandPlan, Hosts, Readers, Step, command_plans, memory_of, merged
from bmcompiler.backends.dv.lowering.joining import Inner, Key, Node, Unit, nodes_of
from bmcompiler.backends.dv.lowering.parts import is_unrounded
from bmcompiler.codegen.memory import Lifetime, first_fit, outermost, root_of
from bmcompiler.ir import Operation, Value
from bmcompiler.ir.keys import is_weight
from bmcompiler.ops.base import TensorOp
from bmcompiler.target import Kernel

MAP_ALIGN = 64

KernelOf = Callable[[Operation], Kernel[Any] | None]


@dataclass
class DevicePlan:
    """Commands of a run of device ops in order, and the maps in device memory.

    Attributes:
        steps: commands; a concatenation stands among them only where all its parts are made in their places.
        places: of every map that is in device memory at any time. size: bytes of device memory.
    """

    steps: list[Step]
    places: Mapping[Hashable, MapPlace]
    size: int


def plan_device(
    ops: Sequence[Operation], inputs: Sequence[Value], outputs: Sequence[Value], kernel_of: KernelOf, level: int
) -> DevicePlan:
    """Level 0: a command per op. Level 1: ops join into runs. Level 2: runs share commands, concatenations need none.

    Args:
        inputs: values that are converted before the first command; outputs: those that are after the last one.

    Raises UnsupportedError for an op that is marked as unrounded though its reader cannot join it.
    """

    def may_join(op: TensorOp, kernel: RunKernel[Any], node: Node) -> bool:
        return is_unrounded(node.ops[-1]) or (level > 0 and kernel.keeps_bits(op))

    units = nodes_of(ops, kernel_of, may_join)
    fixed = {*inputs, *map(root_of, outputs)}
    units, hosts = _concatenations(units, fixed, kernel_of, level > 1)
    if level > 1:
        steps = merged(command_plans(units, Readers(units, fixed), hosts), hosts)
    else:
        steps = [CommandPlan([[unit]]) if isinstance(unit, Node) else unit for unit in units]
    places, size = _places(steps, inputs, outputs, hosts)
    return DevicePlan(steps, places, size)


def _concatenations(
    units: Sequence[Unit], fixed: set[Value], kernel_of: KernelOf, in_place: bool
) -> tuple[list[Unit], dict[Key, tuple[Key, int]]]:
    """Where the parts of concatenations lie in the whole; parts that cannot be made there are copied by a run.

    1. a part that a run or another concatenation makes, which is no input or output of the device run, is no part of
       something else and occurs once, is made in its place
    2. every other part is copied
    """
    hosts: dict[Key, tuple[Key, int]] = {}
    made: set[Key] = set()
    found: list[Unit] = []
    for unit in units:
        if isinstance(unit, Node):
            made.add(unit.result)
        elif isinstance(kernel_of(unit), ConcatKernel):
            assert isinstance(unit, TensorOp), "what is no run is an op"
            offset, copies = 0, False
            for index, operand in enumerate(unit.operands):
                part, extent = root_of(operand), extent_of(operand)
                free = part in made and part not in fixed and part not in hosts
                key: Key = part if in_place and free else Inner(unit, index)
                if key is not part:
                    copy = Node(copy_part(extent.c), operand, key, extent, extent, samples_of(operand), [unit])
                    copy.notes.append("copied: its input is an input or output, or a part of another concatenation")
                    found.append(copy)
                    copies = True
                hosts[key] = unit.results[0], offset
                offset += extent.bytes
            made.add(unit.results[0])
            if copies:
                continue
        found.append(unit)
    return found, hosts


def _places(
    steps: Sequence[Step], inputs: Sequence[Value], outputs: Sequence[Value], hosts: Hosts
) -> tuple[dict[Hashable, MapPlace], int]:
    """First fit by lifetime. Inputs come before the first command, outputs stay to the end."""
    lives: dict[Key, Lifetime] = {}
    strides: dict[Key, int] = {}

    def use(key: Key, position: int, size: int, samples: int) -> None:
        if key not in lives:
            lives[key], strides[key] = Lifetime(size * samples, position, position), size
        lives[key].last = max(lives[key].last, position)

    for value in inputs:
        use(value, 0, map_bytes(value) // samples_of(value), samples_of(value))
    for position, step in enumerate(steps):
        for key in _read(step):
            named = key if key in lives else memory_of(key)
            use(outermost(named, hosts)[0], position, 0, 0)
        for key, size, samples in _written(step):
            host, _ = outermost(key, hosts)
            if host is not key:
                assert isinstance(host, Value), "hosts are results of concatenations"
                size = map_bytes(host) // samples
            use(host, position, size, samples)
    for value in outputs:
        use(outermost(root_of(value), hosts)[0], len(steps), 0, 0)
    first_fit(list(lives.values()), 0, MAP_ALIGN)
    places: dict[Hashable, MapPlace] = {key: MapPlace(life.offset, strides[key]) for key, life in lives.items()}
    for key in hosts:
        host, offset = outermost(key, hosts)
        if host in lives:
            places[key] = MapPlace(lives[host].offset + offset, strides[host])
    return places, max((life.offset + life.nbytes for life in lives.values()), default=0)


def _read(step: Step) -> list[Key]:
    if isinstance(step, CommandPlan):
        return step.reads()
    return [value for value in step.operands if not is_weight(root_of(value))]


def _written(step: Step) -> list[tuple[Key, int, int]]:
    """(map, bytes of a sample, samples)."""
    if isinstance(step, CommandPlan):
        return [(chain[-1].result, chain[-1].after.bytes, chain[-1].samples) for chain in step.chains]
    return [(value, map_bytes(value) // samples_of(value), samples_of(value)) for value in step.results]
