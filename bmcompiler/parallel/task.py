"""What is computed for a part, and the pool that computes in this very process."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, TypeVar

S = TypeVar("S")
P = TypeVar("P")
R = TypeVar("R")


class Task(ABC, Generic[S, P, R]):
    """A computation for parts of type P with results of type R; it is pickled and sent to workers.

    What is slow to make (a loaded model) is its state S: every process makes it once, by `load`, and keeps it under
    the task's `key`. A process that is forked later has the states of its parent.
    """

    @property
    @abstractmethod
    def key(self) -> str:
        """Names the state: tasks with one key have equal states."""

    @abstractmethod
    def load(self) -> S:
        """Make the state."""

    @abstractmethod
    def compute(self, state: S, part: P) -> R:
        """The result of one part; depends on nothing else, so that a part may be computed again."""

    def state(self) -> S:
        """The state of this process."""
        if self.key not in _states:
            _states.clear()  # one job at a time: what an earlier one needed may be large
            _states[self.key] = self.load()
        found: S = _states[self.key]
        return found

    def forget(self) -> None:
        """Let go of the state of this process."""
        _states.pop(self.key, None)

    def __call__(self, part: P) -> R:
        return self.compute(self.state(), part)


@dataclass(frozen=True)
class NamedTask(Task[S, P, R]):
    """A task whose state no other task has: each has a `name` of its own."""

    name: str = field(default_factory=lambda: uuid.uuid4().hex, kw_only=True)

    @property
    def key(self) -> str:
        """What tells the task from others of its kind: its name."""
        return self.name


_states: dict[str, Any] = {}


class Pool(ABC):
    """Whoever computes parts. A context manager: leaving it ends the workers."""

    @abstractmethod
    def run(self, task: Task[Any, P, R], parts: Iterable[tuple[int, P]]) -> Iterator[tuple[int, R]]:
        """(number, result) of each (number, part), as they are done.

        Parts are taken from the iterable when a worker has nothing to do, so that few of them are in memory.
        Raises what `task` raises, and RuntimeUseError when workers die over and over again.
        """

    @abstractmethod
    def close(self) -> None:
        """End the workers."""

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class InlinePool(Pool):
    """Computes in this process, one part after the other."""

    def run(self, task: Task[Any, P, R], parts: Iterable[tuple[int, P]]) -> Iterator[tuple[int, R]]:
        try:
            for number, part in parts:
                yield number, task(part)
        finally:
            task.forget()

    def close(self) -> None:
        """There are no workers."""
