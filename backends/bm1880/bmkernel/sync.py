"""Synchronisation ids: which instruction waits for which (bm1880.md 6).

Instructions are counted per engine without bound; only the emitted ids wrap (65535 is followed by 1), so the wait rules
compare true order on both sides of a wrap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bmcompiler.backends.bm1880.bmkernel.prototypes import KERNEL
from bmcompiler.backends.bm1880.isa import MAX_SYNC_ID, Engine
from bmcompiler.errors import EncodingError

_OTHER = {Engine.TPU: Engine.GDMA, Engine.GDMA: Engine.TPU}
_MOST_STREAMS = 1 << 16  # more than instructions that an id can tell apart


def wrapped(number: int) -> int:
    """The 16-bit id of an engine's instruction number (1, 2, ...); 0 stays 0, "no wait"."""
    return (number - 1) % MAX_SYNC_ID + 1 if number else 0


@KERNEL.handle("op_t")
@dataclass(eq=False)
class Op:
    """Handle of an issued instruction, for add_dependency.

    `program` is the same object for all handles between two resets of one context.
    `number` counts the engine's instructions since the last restart; `position` is the record's index in the buffer.
    `predecessors` is None outside stream mode. `after` is the newest instruction of the other engine it waits for.
    """

    engine: Engine
    number: int
    position: int
    restarts: int
    after: int = 0
    predecessors: list[Op] | None = None
    settled: bool = True
    program: object = None

    def ended(self) -> str:
        """Handles are told apart by `SyncIds.add_dependency`, which knows the program they must belong to."""
        return ""


class SyncIds:
    """Issues ids in serial mode, in parallel groups and in streams."""

    def __init__(self) -> None:
        self._restarts = 0
        self.reset()

    @property
    def serial(self) -> bool:
        """True outside parallel groups and streams."""
        return self._frozen is None and self._streams is None

    def reset(self) -> None:
        """Back to serial mode with both counters at 1."""
        self._frozen: dict[Engine, int] | None = None
        self._streams: list[Op | None] | None = None
        self._current = 0
        self._pending: list[Op] = []
        self._exact: int | None = None
        self._program = object()
        self.restart()

    def restart(self) -> None:
        """Full barrier (CPU record): both counters restart at 1, the mode stays. Call `settle` first in stream mode."""
        self._restarts += 1
        self._issued = {Engine.TPU: 0, Engine.GDMA: 0}
        self._waited = {Engine.TPU: 0, Engine.GDMA: 0}
        self._barrier = {Engine.TPU: 0, Engine.GDMA: 0}
        self._met: dict[Engine, set[Op]] = {Engine.TPU: set(), Engine.GDMA: set()}
        if self._frozen is not None:
            self._frozen = dict(self._issued)
        if self._streams is not None:
            self._streams = [None] * len(self._streams)

    def issue(self, engine: Engine, position: int) -> tuple[Op, int, int]:
        """Number the next instruction: (handle, own id, wait id). In stream mode the wait id is 0 until `settle`."""
        number = self._issued[engine] = self._issued[engine] + 1
        op = Op(engine, number, position, self._restarts, program=self._program)
        if self._streams is not None:
            last = self._streams[self._current]
            op.predecessors = [] if last is None else [last]
            op.settled = False
            self._streams[self._current] = op
            self._pending.append(op)
            return op, wrapped(number), 0
        after = self._exact if self._exact is not None else (self._frozen or self._issued)[_OTHER[engine]]
        self._exact, op.after = None, after
        if op.after <= self._waited[engine]:
            return op, wrapped(number), 0
        self._waited[engine] = op.after
        return op, wrapped(number), wrapped(op.after)

    def issued(self, engine: Engine) -> int:
        """Number of the newest instruction of an engine since the last restart, 0 = none."""
        return self._issued[engine]

    def wait_for(self, number: int) -> None:
        """Make the next instruction wait for instruction `number` of the other engine alone, 0 = for none.

        For callers that know what instructions touch; streams give any program such waits (bm1880.md 6).
        """
        self._exact = number

    def parallel_enable(self) -> None:
        """Open a parallel group: its instructions wait only for what was issued before it."""
        if self._frozen is not None or self._streams is not None:
            raise EncodingError("bmk1880_parallel_enable: a parallel group or streams are already active")
        self._frozen = dict(self._issued)

    def parallel_disable(self) -> None:
        """Close the parallel group."""
        if self._frozen is None:
            raise EncodingError("bmk1880_parallel_disable: no parallel group is active")
        self._frozen = None

    def create_streams(self, nr_streams: int) -> None:
        """Enter stream mode; earlier instructions are finished before any later one (barrier)."""
        if self._frozen is not None or self._streams is not None:
            raise EncodingError("bmk1880_create_streams: a parallel group or streams are already active")
        if not 1 <= nr_streams <= _MOST_STREAMS:
            raise EncodingError(f"bmk1880_create_streams: nr_streams is {nr_streams}, must be 1 to {_MOST_STREAMS}")
        self._streams, self._current = [None] * nr_streams, 0
        self._barrier = dict(self._issued)

    def destroy_streams(self) -> Iterator[tuple[Op, int]]:
        """Return to serial mode; yields the waits that were still open (see `settle`)."""
        if self._streams is None:
            raise EncodingError("bmk1880_destroy_streams: no streams are active")
        yield from self.settle()
        self._streams = None
        self._met = {Engine.TPU: set(), Engine.GDMA: set()}

    def set_stream(self, i: int) -> None:
        """Put the following instructions into stream i."""
        if self._streams is None or not 0 <= i < len(self._streams):
            count = len(self._streams or ())
            raise EncodingError(f"bmk1880_set_stream: stream {i} does not exist, {count} streams were created")
        self._current = i

    def add_dependency(self, before: Op, after: Op) -> None:
        """Make `after` wait for `before`.

        Raises:
            EncodingError: a handle of another context or from before a reset, `before` was issued later, or the wait
                id of `after` is fixed already and does not cover it.
        """
        for name, op in (("before", before), ("after", after)):
            if op.program is not self._program:
                raise EncodingError(f"bmk1880_add_dependency: {name} is of another context or from before a reset")
        if (before.restarts, before.position) >= (after.restarts, after.position):
            raise EncodingError("bmk1880_add_dependency: 'before' must be issued earlier than 'after'")
        if before.restarts < after.restarts or before.engine == after.engine:
            return  # a full barrier lies between, or the engine executes in order
        if after.predecessors is None:
            if before.number > after.after:
                raise EncodingError("bmk1880_add_dependency: both are in one parallel group, use streams")
            return
        if before.predecessors is None:
            return  # issued before create_streams, which is a barrier
        if after.settled:
            raise EncodingError("bmk1880_add_dependency: the command buffer with 'after' was acquired already")
        after.predecessors.append(before)

    def settle(self) -> Iterator[tuple[Op, int]]:
        """Fix the wait ids of stream instructions issued since the last call; yields (handle, wait id) where not 0."""
        for op in self._pending:
            other = _OTHER[op.engine]
            met = self._met[op.engine]
            required = {p for p in op.predecessors or () if p.engine is other}
            need = max((p.number for p in required - met), default=0)
            met |= required
            if self._barrier[other] > self._waited[op.engine]:
                need = max(need, self._barrier[other])
            self._barrier[other] = 0  # only the engine's first instruction in the streams meets the barrier
            self._waited[op.engine] = max(self._waited[op.engine], need)
            op.settled = True
            if need:
                yield op, wrapped(need)
        self._pending = []
