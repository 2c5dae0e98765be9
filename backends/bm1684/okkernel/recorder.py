"""What a kernel's calls add up to: commands with ids and waits by the library's rule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from bmcompiler.backends.bm168x.builder import GroupBuilder, Ticket
from bmcompiler.backends.bm168x.calls import Source
from bmcompiler.backends.bm1684.isa import FORMATS, OWN_ID, WAIT_ID, Engine
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.errors import UsageError
from bmcompiler.instructions.order import STREAMS

MOST_IDS = 60000
"""When one engine has so many, the library waits for both and begins the ids again (bm1684-timing.md 4)."""


class Recorder:
    """Takes the commands of one kernel.

    A command waits for the newest one of the other engine; in parallel state for what was newest when the state began.
    """

    def __init__(self) -> None:
        self._builder = GroupBuilder(MOST_IDS)
        self._groups: list[CommandGroup] = []
        self._before: tuple[Ticket, ...] | None = None
        self._source: Source | None = None
        self.sources: dict[tuple[int, Engine], list[Source | None]] = defaultdict(list)
        """The calls behind the commands of each group and engine."""
        self.refused: Exception | None = None
        """The first call of the kernel that was refused, where the kernel itself is not told: in C."""

    def tiu(self, **fields: int) -> None:
        """Issue a TIU command. Raises EncodingError for a value that does not fit its field."""
        self._issue(Engine.TIU, fields)

    def gdma(self, *, src_addr: int = 0, dst_addr: int = 0, **fields: int) -> None:
        """Issue a GDMA command; addresses have 40 bits. Raises EncodingError for a value that does not fit."""
        for name, address in (("src_addr", src_addr), ("dst_addr", dst_addr)):
            fields |= {f"{name}_lo": address & 0xFFFF_FFFF, f"{name}_hi": address >> 32}
        self._issue(Engine.GDMA, fields)

    def _issue(self, engine: Engine, fields: dict[str, int]) -> None:
        layout, own, wait = FORMATS[engine], OWN_ID[engine], WAIT_ID[engine]
        ticket = self._builder.issue(
            engine, lambda number, other: layout.pack({**fields, own: number, wait: other}), self._before
        )
        self.sources[ticket.group, engine].append(self._source)

    @contextmanager
    def called(self, source: Source) -> Iterator[None]:
        """Commands inside are those of a call, or of the one around it."""
        outer = self._source
        self._source = outer or source
        try:
            yield
        finally:
            self._source = outer

    def initialize(self) -> None:
        """Ids begin again, in serial state."""
        self._groups += self._builder.finish()
        self._before = None

    @property
    def parallel(self) -> bool:
        """Whether commands of the two engines run beside each other."""
        return self._before is not None

    def start(self) -> None:
        """Begin the parallel state. Raises UsageError when it is on."""
        if self.parallel:
            raise UsageError("okk_parallel_start: the parallel state has begun already")
        self._before = tuple(self._builder.newest(engine) for engine in STREAMS)

    def end(self) -> None:
        """End the parallel state. Raises UsageError when it is not on."""
        if not self.parallel:
            raise UsageError("okk_parallel_end: no parallel state has begun")
        self._before = None

    def groups(self) -> list[CommandGroup]:
        """The streams of each run of ids, so far."""
        return [*self._groups, *self._builder.groups()]


_CURRENT: ContextVar[Recorder | None] = ContextVar("okkernel_recorder", default=None)


def recorder_or_none() -> Recorder | None:
    """The recorder of the kernel that is being recorded."""
    return _CURRENT.get()


def current() -> Recorder:
    """The recorder of the kernel that is being recorded. Raises UsageError outside of kernels."""
    found = recorder_or_none()
    if found is None:
        raise UsageError(
            "functions that issue commands are called inside a kernel",
            remedy="call it in a function with @kernel, in C in one that OKKERNEL_FUNC_REGISTER registers and "
            "okkernel_launch_sync runs",
        )
    return found


@contextmanager
def recording() -> Iterator[Recorder]:
    """Record the calls inside of the block."""
    recorder = Recorder()
    token = _CURRENT.set(recorder)
    try:
        yield recorder
    finally:
        _CURRENT.reset(token)
