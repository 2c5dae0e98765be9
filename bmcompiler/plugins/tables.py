"""Tables that plugins fill: converters, custom layers, kernels. A key belongs to one package.

An entry point of such a group names a module (importing it registers), a class, or a function to call. It is loaded
when a key is looked for that nobody registered yet: first those called like the key, then all. So a plugin that names
its entry points after what they add is imported by its users only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from types import MappingProxyType, ModuleType
from typing import Any, Generic, TypeVar

from bmcompiler.errors import UnsupportedError
from bmcompiler.plugins.registry import BUILT_IN, PluginError, current_owner, entry_points, is_built_in, load_point

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass
class Doors:
    """Entry points of one group that are loaded at most once; `take` gets what a point names (modules: None to do).

    A group may fill several tables.
    """

    group: str
    take: Callable[[Any], None]
    opened: set[EntryPoint] = field(default_factory=set)
    broken: dict[EntryPoint, PluginError] = field(default_factory=dict)

    def open_built_in(self) -> None:
        """Load this project's own entry points."""
        for loader in entry_points(self.group).values():
            for point in loader.points:
                if point not in self.opened and is_built_in(point):  # the answer reads a file
                    self._load(point)

    def open(self, name: str) -> None:
        """Load the entry points called `name`. Raises PluginError when one is broken: it is the one that is needed."""
        loader = entry_points(self.group).get(name)
        for point in loader.points if loader is not None else ():
            self._load(point)

    def open_all(self) -> None:
        """Load all that are not loaded; broken ones are noted (`registry.failures`) and left out."""
        for loader in entry_points(self.group).values():
            for point in loader.points:
                try:
                    self._load(point)
                except PluginError:
                    continue

    def _load(self, point: EntryPoint) -> None:
        if point in self.broken:
            raise self.broken[point]
        if point not in self.opened:
            try:
                load_point(point, self._take)
            except PluginError as error:
                self.broken[point] = error
                raise
            self.opened.add(point)

    def _take(self, found: Any) -> None:
        if not isinstance(found, ModuleType):
            self.take(found)


class PluginTable(Generic[K, V]):
    """Registered objects by key, each with the package it came from.

    Args:
        doors: where further entries may come from; None when the owner of the table loads plugins itself.
        what: how messages call a key ("Caffe layer type 'ReLU'").
        names: names of entry points that would hold the key.
    """

    def __init__(
        self, doors: Doors | None, what: Callable[[K], str], names: Callable[[K], tuple[str, ...]] = lambda key: ()
    ) -> None:
        self.doors, self.what, self.names = doors, what, names
        self._entries: dict[K, V] = {}
        self._owners: dict[K, str] = {}
        self._clashes: dict[K, tuple[str, str]] = {}
        self._grouped: dict[K, V] = {}
        """The entries that `_families` speaks of; others once something is added."""
        self._families: dict[tuple[Hashable, ...], list[K]] = {}
        self._local: ContextVar[Mapping[K, V]] = ContextVar("local", default=MappingProxyType({}))
        TABLES.append(self)

    def add(self, key: K, value: V, *, replace: bool = False) -> None:
        """Register. The same object may come again; another package's key becomes a clash, reported when it is used.

        Args:
            replace: the key may be a built-in one, whose place this takes.

        Raises:
            UnsupportedError: the key is built in, or the same package (or program) registered another object for it.
        """
        self._grouped = {}
        owner = _owner_of(value)
        known = self._entries.get(key)
        if known is None or _identity(known) == _identity(value):
            self._entries[key] = value
            self._owners.setdefault(key, owner)
            return
        other = self._owners[key]
        built_in = other == BUILT_IN
        if built_in and replace:
            self._entries[key], self._owners[key] = value, owner
        elif built_in or other == owner:
            by = f"by {other} and {owner or 'this program'}" if built_in else f"as {known} and {value}"
            raise UnsupportedError(f"{self.what(key)} is registered twice: {by}")
        else:
            self._clashes[key] = (other or "this program", owner or "this program")

    def get(self, key: K, *, search: bool = True) -> V | None:
        """The object of a key; plugins are loaded when it is not known yet, if `search`.

        Raises:
            PluginError: two packages claim the key, or the plugin called like it is broken.
        """
        local = self._local.get()
        if key in local:
            return local[key]
        if key not in self._entries and self.doors is not None:
            self._look_for(key, self.doors, search)
        if key in self._clashes:
            raise self.clash(key)
        return self._entries.get(key)

    def _look_for(self, key: K, doors: Doors, search: bool) -> None:
        doors.open_built_in()
        if key not in self._entries:
            for name in self.names(key):
                doors.open(name)
        if search and key not in self._entries:
            doors.open_all()

    def clash(self, key: K) -> PluginError:
        """The error for a key that two packages claim."""
        first, second = self._clashes[key]
        return PluginError(
            f"{self.what(key)} is claimed by two packages: {first} and {second}", remedy="uninstall one of them"
        )

    def clashes(self) -> list[tuple[str, str, str]]:
        """(what, package, package) of all keys that two packages claim."""
        return [(self.what(key), *owners) for key, owners in self._clashes.items()]

    def registered(self) -> list[K]:
        """Every key that is registered so far, those claimed twice included, local ones not."""
        return list(self._entries)

    def family(self, first: tuple[Hashable, ...]) -> list[K]:
        """Those keys that are tuples and begin with `first`, of one more element."""
        if self._grouped is not self._entries:
            self._families = defaultdict(list)
            for key in self._entries:
                if isinstance(key, tuple):
                    self._families[key[:-1]].append(key)
            self._grouped = self._entries
        return self._families.get(first, [])

    def entries(self) -> dict[K, V]:
        """All that is registered so far, local entries included, claimed twice not."""
        known = {key: value for key, value in self._entries.items() if key not in self._clashes}
        return {**known, **self._local.get()}

    @contextmanager
    def local(self, entries: Mapping[K, V]) -> Iterator[None]:
        """Inside, these go before all registered ones."""
        token = self._local.set({**self._local.get(), **entries})
        try:
            yield
        finally:
            self._local.reset(token)


TABLES: list[PluginTable[Any, Any]] = []
"""Every table made so far."""


def _owner_of(value: Any) -> str:
    """Ours by its module: a plugin's import may be what imports a built-in family first."""
    return BUILT_IN if getattr(value, "__module__", "").startswith(f"{BUILT_IN}.") else current_owner()


def _identity(value: Any) -> tuple[str, str]:
    return getattr(value, "__module__", ""), getattr(value, "__qualname__", repr(value))
