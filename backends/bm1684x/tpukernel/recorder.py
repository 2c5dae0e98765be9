"""What a kernel's calls add up to: commands with ids and waits, of the sort engine without (tpukernel-api.md 2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import NamedTuple, Protocol

from bmcompiler.backends.bm168x.calls import Source
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.instructions.operands import Command
from bmcompiler.errors import EncodingError, UsageError
from bmcompiler.instructions.order import STREAMS, Engine, Poll

_OTHER = {Engine.TIU: Engine.GDMA, Engine.GDMA: Engine.TIU}


class Release(Enum):
    """Which library is followed where two differ.

    SEED: the reference of the functions: loaders fill what it says. MEASURED: the one that was measured, whose loaders
    write what its composites read.
    """

    SEED = "seed"
    MEASURED = "measured"


class Issued(NamedTuple):
    """A command with its id and what it waits for; `epoch` counts calls of `tpu_initialize`, which restarts the ids.

    `data` is `command` with the id and `wait`, the id of the other engine that it waits for, 0 = none; commands of the
    sort engine have neither. `source` is the call that issued it, None where no function did.
    """

    command: Command
    data: bytes
    wait: int
    epoch: int
    source: Source | None = None

    @property
    def engine(self) -> Engine:
        """The engine that executes it."""
        return self.command.engine


class Board(Protocol):
    """What runs a kernel while it is being recorded."""

    def run(self, recorder: Recorder) -> None:
        """Run what has been issued. Raises SimulatorError."""

    def place(self, address: int, memory: Memory, lane: int) -> int:
        """Where a byte of a memory lies in this process. Raises RuntimeUseError where there is none."""

    def kept(self) -> int:
        """Elements that the last masked select or nonzero kept."""


class Memory(Enum):
    """A memory that a kernel's processor may look into."""

    GLOBAL = "global"
    L2 = "L2"
    LOCAL = "local"


class Recorder:
    """Takes the commands of one kernel.

    In serial state a command waits for the newest command of the other engine. In parallel state it waits for what was
    the newest one when the state began.
    """

    def __init__(self, release: Release = Release.SEED) -> None:
        self.release = release
        self.commands: list[Issued] = []
        self.polls: list[tuple[int, Poll]] = []
        """Epoch and what was waited for."""
        self.source: Source | None = None
        """The call whose commands are being issued."""
        self._epoch = 0
        self._last = {engine: 0 for engine in Engine}
        self._before: dict[Engine, int] | None = None
        self.refused: Exception | None = None
        """The first call of the kernel that was refused, where the kernel itself is not told: in C."""
        self.board: Board | None = None
        """Where it runs while it is recorded; None where that comes later."""
        self._looks = False
        """Whether the kernel's processor has looked into a memory: what it waits for is to be there, then."""

    def add(self, *commands: Command) -> None:
        """Issue commands. Raises EncodingError for fields that are too narrow, or when ids run out."""
        for command in commands:
            engine = command.engine
            waits = self._last if self._before is None else self._before
            own = self._last[engine] + 1
            if engine in STREAMS and own >= CHIP.max_command_id:
                raise EncodingError(f"a kernel has at most {CHIP.max_command_id - 1} commands of an engine")
            wait = waits[_OTHER[engine]] if engine in STREAMS else 0
            data = command.encode(own, wait)
            self._last[engine] = own
            self.commands.append(Issued(command, data, wait, self._epoch, self.source))

    def poll(self, *engines: Engine) -> None:
        """The kernel's processor waits for engines before it issues more."""
        self.polls += ((self._epoch, Poll(engine, *(self._last[each] for each in Engine))) for engine in engines)
        if self._looks:
            self._run()

    def look(self, address: int, memory: Memory, lane: int = 0) -> int:
        """Where a byte of memory lies in this process, with all done that was issued; so it is after later polls.

        Raises UsageError where the kernel runs later, RuntimeUseError where there is no memory.
        """
        return self._looked().place(address, memory, lane)

    def kept(self) -> int:
        """Elements that the last masked select or nonzero kept. Raises UsageError where the kernel runs later."""
        return self._looked().kept()

    def _looked(self) -> Board:
        """Where the kernel runs, with all done that was issued."""
        if self.board is None:
            raise UsageError(
                "a kernel is recorded here before it runs, and cannot read what it computes",
                remedy="look at the memory of the KernelDevice after the launch; kernels in C may look, where a card "
                "launches them",
            )
        self._looks = True
        self._run()
        return self.board

    def _run(self) -> None:
        """Run what has been issued; ids begin again, with nothing to wait for."""
        assert self.board is not None, "only a kernel that runs looks"
        if self.commands and self.refused is None:
            self.board.run(self)
        self.commands, self.polls = [], []
        self._last = {engine: 0 for engine in Engine}
        self._before = None if self._before is None else dict(self._last)

    @contextmanager
    def called(self, source: Source) -> Iterator[None]:
        """Commands inside are those of a call, or of the one around it."""
        outer = self.source
        self.source = outer or source
        try:
            yield
        finally:
            self.source = outer

    def initialize(self) -> None:
        """Ids begin again, in serial state."""
        self._epoch += bool(self.commands)
        self._last = {engine: 0 for engine in Engine}
        self._before = None

    @property
    def parallel(self) -> bool:
        """Whether commands of the two engines run beside each other."""
        return self._before is not None

    def start(self) -> None:
        """Begin the parallel state. Raises UsageError when it is on."""
        if self._before is not None:
            raise UsageError("tpu_parallel_start: the parallel state has begun already")
        self._before = dict(self._last)

    def end(self) -> None:
        """End the parallel state. Raises UsageError when it is not on."""
        if self._before is None:
            raise UsageError("tpu_parallel_end: no parallel state has begun")
        self._before = None


_CURRENT: ContextVar[Recorder | None] = ContextVar("tpukernel_recorder", default=None)


def recorder_or_none() -> Recorder | None:
    """The recorder of the kernel that is being recorded."""
    return _CURRENT.get()


def current() -> Recorder:
    """The recorder of the kernel that is being recorded. Raises UsageError outside of kernels."""
    found = recorder_or_none()
    if found is None:
        raise UsageError(
            "functions that issue commands are called inside a kernel",
            remedy="call it in a function with @kernel or in `with recording():`, in C in one that "
            "TPUKERNEL_FUNC_REGISTER registers and a launch runs",
        )
    return found


@contextmanager
def recording(release: Release | str = Release.SEED) -> Iterator[Recorder]:
    """Record the calls inside of the block.

    Args:
        release: "seed" or "measured".
    """
    try:
        recorder = Recorder(Release(release))
    except ValueError:
        raise UsageError(f"there is no release {release!r}: {', '.join(each.value for each in Release)}") from None
    token = _CURRENT.set(recorder)
    try:
        yield recorder
    finally:
        _CURRENT.reset(token)
