"""What a test reaches through what was computed before it: caches of functions, and fixtures that tests share.

Whoever computes a value first would else be the only one that is known to reach the code it comes from, and a fault of
that code would be asked of none of those that look at the value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from typing import Any

import pytest

from mutation.targets import ROOT

Reached = frozenset[int]


class Remembered:
    """The statements that tests reach; what is computed once counts for all who ask for it."""

    def __init__(self) -> None:
        self.now: set[int] = set()
        self.told: set[int] = set()
        self.fixtures: dict[int, Reached] = {}
        self.same: dict[Reached, Reached] = {}

    def begin(self) -> None:
        """The next test."""
        self.now.clear()
        self.told.clear()

    def computed(self, compute: Callable[[], Any]) -> tuple[Any, Reached]:
        """A value and what is reached for it, which is reached now, too."""
        before = set(self.now)
        self.now.clear()
        try:
            value = compute()
        finally:
            found = frozenset(self.now)
            self.now |= before
        return value, self.same.setdefault(found, found)

    def again(self, found: Reached) -> None:
        """A value is used that was computed with these."""
        if id(found) not in self.told:
            self.told.add(id(found))
            self.now |= found

    def cached(self, maxsize: Any = 128, typed: bool = False) -> Callable[..., Any]:
        """As `functools.lru_cache`; of functions of ours what they reached is kept, too."""
        if callable(maxsize):
            return self.cached()(maxsize)

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            code = getattr(function, "__code__", None)
            if code is None or not code.co_filename.startswith(str(ROOT)):
                return LRU_CACHE(maxsize, typed)(function)
            pairs = LRU_CACHE(maxsize, typed)(lambda *args, **named: self.computed(lambda: function(*args, **named)))

            @functools.wraps(function)
            def call(*args: Any, **named: Any) -> Any:
                value, found = pairs(*args, **named)
                self.again(found)
                return value

            for name in ("cache_info", "cache_clear", "cache_parameters"):
                setattr(call, name, getattr(pairs, name))
            return call

        return decorate

    def install(self) -> None:
        """From now on, modules that are imported have these caches."""
        functools.lru_cache = self.cached
        functools.cache = self.cached(maxsize=None)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, None, None]:
        """What a fixture reaches that is made once for many tests."""
        before = set(self.now)
        self.now.clear()
        yield
        self.fixtures[id(fixturedef)] = frozenset(self.now)
        self.now |= before

    def end(self, item: pytest.Item) -> set[int]:
        """All that a test reached."""
        known = getattr(item, "_fixtureinfo", None)
        definitions = known.name2fixturedefs.values() if known else ()
        used = [self.fixtures.get(id(each), frozenset()) for row in definitions for each in row[-1:]]
        return self.now.union(*used)


LRU_CACHE = functools.lru_cache
