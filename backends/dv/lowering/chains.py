"""From runs to commands: runs that pass their results on through the unified buffer share a command (dv.md 1.6, 4.4).

A command is a list of chains that all read its input; inside a chain every run reads the result of the one before it,
which never leaves the unified buffer. The last results of the chains go to device memory, one after the other. Whether
runs fit together is asked of the driver's own limits; every result that is not passed on has a note that says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bmcompiler.backends.dv.chip import CHIP
from bmcompiler.backends.dv.driver.checks import limits
from bmcompiler.backends.dv.driver.commands import ConvCommand
from bmcompiler.backends.dv.driver.structs import MAX_RUNS, OutputMode
from bmcompiler.backends.dv.lowering.joining import Key, Node, Unit
from bmcompiler.codegen.memory import root_of
from bmcompiler.ir import Operation, Value

Hosts = Mapping[Key, tuple[Key, int]]
"""Maps that are a part of another map: (the other one, byte offset in each of its samples)."""


@dataclass(eq=False)
class CommandPlan:
    """The runs of one command: chains of nodes that read the same map."""

    chains: list[list[Node]]

    @property
    def nodes(self) -> list[Node]:
        """All runs in order."""
        return [node for chain in self.chains for node in chain]

    @property
    def source(self) -> Key:
        """The map that the command reads."""
        return self.chains[0][0].source

    def reads(self) -> list[Key]:
        """All maps that must be in memory."""
        addends = (node.part.addend for node in self.nodes)
        return [self.source, *(value for value in addends if value is not None)]

    def results(self) -> list[Key]:
        """The maps that go to memory, in order."""
        return [chain[-1].result for chain in self.chains]

    def command(self) -> ConvCommand:
        """The command without its buffers."""
        topo = 0
        place = -1
        for chain in self.chains:
            place += len(chain)
            topo |= 1 << place
        nodes = self.nodes
        mode = OutputMode.ADD if nodes[-1].part.addend is not None else OutputMode.CONCAT
        w, h, _, c = nodes[0].before
        return ConvCommand(w, h, c, tuple(node.part.run for node in nodes), topo, output_mode=mode)


Step = CommandPlan | Operation
"""A command with one or more runs, or an op with commands of its own."""


class Readers:
    """Who reads the maps of a run of device ops.

    Args:
        outside: maps that the host reads, or that are outputs.
    """

    def __init__(self, units: Iterable[Unit], outside: Iterable[Key]) -> None:
        self.outside = set(outside)
        self.by: dict[Key, list[Unit]] = {}
        for unit in units:
            keys = unit.reads() if isinstance(unit, Node) else unit.operands
            for key in keys:
                self.by.setdefault(memory_of(key), []).append(unit)

    def why_stored(self, node: Node, hosts: Hosts) -> str | None:
        """Why the result of a run must go to device memory, None when one run alone reads it."""
        readers = self.by.get(node.result, [])
        if node.result in self.outside:
            return "the host or the caller reads its result"
        if node.result in hosts:
            return "its result is a part of a concatenation"
        if len(readers) != 1:
            return f"its result has {len(readers)} readers"
        if node.part.addend is not None:
            return "an addition writes device memory and ends its command"
        (reader,) = readers
        if not isinstance(reader, Node):
            return f"{reader.label} ({reader.short_name}) has a command of its own"
        if memory_of(reader.source) != node.result:
            return f"{reader.name} adds it, from device memory"
        return None


def memory_of(key: Key) -> Key:
    """The map whose memory a key names: views are what they are views of."""
    return root_of(key) if isinstance(key, Value) else key


def command_plans(units: Sequence[Unit], readers: Readers, hosts: Hosts) -> list[Step]:
    """Commands in order, each run as early in a chain as the limits allow; an op that is no run stays as it is."""
    steps: dict[Step, None] = {}
    open_chains: dict[Key, CommandPlan] = {}
    for unit in units:
        if not isinstance(unit, Node):
            steps[unit] = None
            continue
        before = open_chains.pop(memory_of(unit.source), None)
        longer = None if before is None else _longer(before, unit)
        if before is not None and longer is not None:
            del steps[before]
        plan = longer or CommandPlan([[unit]])
        steps[plan] = None
        why = readers.why_stored(unit, hosts)
        if why is None:
            open_chains[unit.result] = plan
        else:
            unit.notes.append(f"to device memory: {why}")
    return list(steps)


def _longer(plan: CommandPlan, node: Node) -> CommandPlan | None:
    """The chain with one more run; None where the limits do not allow that, which the last run so far then notes."""
    (chain,) = plan.chains
    if chain[-1].after != node.before:
        chain[-1].notes.append(f"to device memory: {node.name} reads its result flat")
        return None
    found = CommandPlan([[*chain, node]])
    reason = why_no_command(found)
    if reason:
        chain[-1].notes.append(f"to device memory: {reason}")
        return None
    return found


def why_no_command(plan: CommandPlan) -> str | None:
    """Why the runs of a plan cannot share a command."""
    if len(plan.nodes) > MAX_RUNS:
        return f"a command has {MAX_RUNS} runs"
    refused = limits(plan.command(), CHIP)
    return None if refused is None else refused.text


def merged(steps: Sequence[Step], hosts: Hosts) -> list[Step]:
    """Commands that read the same map and make neighbouring parts of one map, as one command at the place of the last.

    A command is not delayed beyond one that reads its results.
    """
    found: list[Step] = []
    for step in steps:
        while isinstance(step, CommandPlan):
            partner = next(_partners(step, found, hosts), None)
            if partner is None:
                break
            earlier, both = partner
            found.remove(earlier)
            step = both
        found.append(step)
    return found


def _partners(plan: CommandPlan, before: Sequence[Step], hosts: Hosts) -> Iterator[tuple[CommandPlan, CommandPlan]]:
    """(earlier command, both as one), the latest first."""
    if any(result not in hosts for result in plan.results()):
        return
    read: set[Key] = set()
    for step in reversed(before):
        if isinstance(step, CommandPlan) and step.source == plan.source and not read.intersection(step.results()):
            both = _side_by_side(step, plan, hosts)
            if both is not None:
                yield step, both
        keys = step.reads() if isinstance(step, CommandPlan) else step.operands
        read.update(map(memory_of, keys))


def _side_by_side(first: CommandPlan, second: CommandPlan, hosts: Hosts) -> CommandPlan | None:
    """Both as one command, when their results follow each other in one map and the limits allow it."""
    if any(node.part.addend is not None for node in (*first.nodes, *second.nodes)):
        return None
    if any(result not in hosts for result in first.results()):
        return None
    low, high = sorted((first, second), key=lambda plan: hosts[plan.results()[0]][1])
    last, following = low.chains[-1][-1], high.chains[0][-1]
    (host, offset), (other, start) = hosts[last.result], hosts[following.result]
    if host != other or offset + last.after.bytes != start:
        return None
    both = CommandPlan([*low.chains, *high.chains])
    return None if why_no_command(both) else both
