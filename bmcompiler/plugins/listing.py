"""Which plugins are installed, and whether each can be loaded: `bmnet-compile --list-plugins`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint

from bmcompiler import ops
from bmcompiler.plugins import custom_layers
from bmcompiler.plugins.registry import (
    GROUPS,
    OTHER_GROUPS,
    PluginError,
    entry_points,
    failure_of,
    is_built_in,
    package_of,
    usable,
)
from bmcompiler.plugins.tables import TABLES


@dataclass(frozen=True)
class PluginInfo:
    """One entry point of another package. `state` is "ok", "broken: REASON" or "clash: WHO WITH WHOM"."""

    name: str
    group: str
    package: str
    version: str
    state: str


def list_plugins() -> list[PluginInfo]:
    """All plugins that are not part of this project, by package, group and name. Imports every one of them."""
    _load_all()
    found = []
    for point in _points():
        if not is_built_in(point):
            name, _, version = package_of(point).rpartition(" ")
            found.append(PluginInfo(point.name, point.group.partition(".")[2], name, version, _state(point)))
    return sorted(found, key=lambda info: (info.package, info.group, info.name))


def built_in_counts() -> dict[str, int]:
    """Group -> number of this project's own entry points."""
    counts: dict[str, int] = {}
    for point in filter(is_built_in, _points()):
        group = point.group.partition(".")[2]
        counts[group] = counts.get(group, 0) + 1
    return counts


def _points() -> Iterator[EntryPoint]:
    for group in (*GROUPS, *OTHER_GROUPS):
        for loader in entry_points(group).values():
            yield from loader.points


def _load_all() -> None:
    """Each group as it is loaded when it is used; failures and clashes are noted on the way."""
    ops.load_all()
    custom_layers.load_plugins()
    for _, frontend in usable("bmcompiler.frontends"):
        frontend.load_plugins()
    filled = {table.doors.group for table in TABLES if table.doors is not None}
    for group in (*GROUPS, *OTHER_GROUPS):
        for loader in entry_points(group).values() if group not in filled else ():
            if all(map(is_built_in, loader.points)):
                continue
            try:
                loader()
            except PluginError:
                continue


def _state(point: EntryPoint) -> str:
    failure = failure_of(point)
    if failure is not None:
        return f"broken: {failure.cause}" if len(_same_name(point)) == 1 else f"clash: {failure.cause}"
    for table in TABLES:
        if table.doors is not None and table.doors.group == point.group:
            for what, first, second in table.clashes():
                if package_of(point) in (first, second):
                    return f"clash: {what} is claimed by {first} and {second}"
    return "ok"


def _same_name(point: EntryPoint) -> tuple[EntryPoint, ...]:
    filled = {table.doors.group for table in TABLES if table.doors is not None}
    return (point,) if point.group in filled else entry_points(point.group)[point.name].points
