"""Which table of cycles a compilation plans with, and what it decided by it.

Kernels are made once for a chip, profiles of the timing model belong to a compilation: its table holds for the thread
(or task) that compiles, and what was decided by a table is kept with it. So no decision of one compilation reaches
another one, before, after or beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_MOST = 1 << 14
"""Decisions that are kept of a table."""


class Planned(Generic[T]):
    """A table of cycles: `usual`, or in a compilation that plans with another one, that."""

    def __init__(self, name: str, usual: T) -> None:
        self._usual = usual
        self._other: ContextVar[T | None] = ContextVar(name, default=None)

    def get(self) -> T:
        """The table of this context."""
        other = self._other.get()
        return self._usual if other is None else other

    @contextmanager
    def exchanged(self, other: T) -> Iterator[None]:
        """Plan with another table meanwhile, in this context alone."""
        token = self._other.set(other)
        try:
            yield
        finally:
            self._other.reset(token)


class Decisions:
    """What functions decided, by their arguments; of one table of cycles."""

    def __init__(self) -> None:
        self._found = lru_cache(_MOST)(_call)
        self._known: dict[Hashable, object] = {}

    def of(self, function: Callable[..., R], *arguments: object) -> R:
        """`function(*arguments)`, once for the same arguments, which are hashable."""
        found: R = self._found(function, *arguments)
        return found

    def once(self, key: Hashable, decide: Callable[[], R]) -> R:
        """`decide()`, once for the same key, which stands for all that it looks at."""
        if key not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = decide()
        found: R = self._known[key]  # type: ignore[assignment]
        return found


def _call(function: Callable[..., R], *arguments: object) -> R:
    return function(*arguments)
