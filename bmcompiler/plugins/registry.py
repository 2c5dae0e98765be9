"""Frontends, targets, devices, passes and custom ops, found by entry-point group and name.

Built-in parts and users' plugins come through the same door: a package that declares, in its pyproject.toml,

    [project.entry-points."bmcompiler.targets"]
    mychip = "my_package.target:MyTarget"

is found here. Nothing is imported before it is asked for: listing names is cheap, and a broken plugin hurts only its
users. `bmcompiler.plugins.tables.PluginTable` is for groups whose entries are found by what they register.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bmcompiler.errors import BMError, UnsupportedError

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

GROUPS = tuple(
    f"bmcompiler.{kind}"
    for kind in ("frontends", "targets", "devices", "passes", "onnx_ops", "caffe_layers", "tensor_ops", "tensor_insts")
)
OTHER_GROUPS = (
    *(f"bmcompiler.{kind}" for kind in ("containers", "cpu_functions", "runtimes", "analyzers", "timing_profiles")),
    *(f"bmcompiler.{kind}" for kind in ("listings", "c_libraries", "llm_families", "llm_readers")),
)
"""Groups that chips with a model file of their own need, the runtime, and language models."""
BUILT_IN = "bmcompiler"
"""Name of the distribution whose entry points are the built-in parts."""

_EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "bmcompiler.devices": ("a device", ("load",)),
    "bmcompiler.passes": ("a Pass class", ("name", "run", "canonicalize_after")),
    "bmcompiler.containers": ("a Container", ("kind", "title", "detect", "module")),
    "bmcompiler.cpu_functions": ("a function", ("__call__",)),
    "bmcompiler.runtimes": ("a session class", ("run",)),
    "bmcompiler.analyzers": ("a function", ("__call__",)),
    "bmcompiler.listings": ("a function", ("__call__",)),
    "bmcompiler.llm_readers": ("a function", ("__call__",)),
    "bmcompiler.c_libraries": ("a CLibrary", ("name", "api", "preamble")),
    "bmcompiler.timing_profiles": ("a dataclass", ("__dataclass_fields__",)),
}
"""What an entry point of a group must name, and the attributes that tell it."""

_BASES = {
    "bmcompiler.frontends": ("a frontend", "bmcompiler.frontend", "Frontend"),
    "bmcompiler.targets": ("a target", "bmcompiler.target", "Target"),
    "bmcompiler.llm_families": ("a family of language models", "bmcompiler.llm.families", "Family"),
}
"""Where an entry point must name an object of a class of ours: module and name of the class."""

_owner: ContextVar[str] = ContextVar("owner", default="")
_failed: dict[EntryPoint, PluginError] = {}


class PluginError(BMError):
    """A plugin that is declared but cannot be imported, that fails when it is used, or two with one name.

    `cause` is the reason without the name of the plugin and of its package, "" where they are not known.
    """

    cause: str = ""


@contextmanager
def plugin_code(what: str) -> Iterator[None]:
    """Around calls of a plugin's own functions: what they raise becomes a PluginError that starts with `what`.

    Reported errors pass; the original exception stays attached for the plugin's author.
    """
    try:
        yield
    except BMError:
        raise
    except RecursionError as error:
        raise PluginError(f"{what} calls itself without end", remedy="repair the plugin, or tell its author") from error
    # Foreign code may raise anything, and all of it means the same to the user.
    except Exception as error:
        raise PluginError(
            f"{what} failed: {type(error).__name__}: {error}", remedy="repair the plugin, or tell its author"
        ) from error


@cache
def _name_and_version(distribution: Distribution) -> tuple[str, str]:
    """Both are read from a file each time they are asked for."""
    return distribution.name, distribution.version


def package_of(point: EntryPoint) -> str:
    """Name and version of the distribution that declares an entry point."""
    return " ".join(_name_and_version(point.dist)) if point.dist is not None else "an unknown package"


def is_built_in(point: EntryPoint) -> bool:
    """True when this project declares an entry point."""
    return point.dist is not None and _name_and_version(point.dist)[0] == BUILT_IN


def current_owner() -> str:
    """Package whose plugin is being loaded ("name version"), "" outside of all: what is registered now is its own."""
    return _owner.get()


def load_point(point: EntryPoint, take: Callable[[Any], None] | None = None) -> Any:
    """The object that an entry point names, handed to `take`.

    Raises:
        PluginError: its import raises anything (also SystemExit), or it is not what the group holds, or `take` refuses
            it. The message has the plugin's name, package and version.
    """
    token = _owner.set(package_of(point))
    what = f"{point.group}: plugin '{point.name}' ({point.value}) of {package_of(point)}"
    try:
        found = point.load()
        _check_kind(point.group, found)
        if take is not None:
            take(found)
        _failed.pop(point, None)
        return found
    # A plugin is foreign code: its import may raise anything, and all of it means the same to the user.
    except (Exception, SystemExit) as error:
        cause = str(error) if isinstance(error, BMError) else f"cannot be imported: {type(error).__name__}: {error}"
        failed = PluginError(f"{what} {cause}", remedy="repair or uninstall the package that provides it")
        failed.cause = cause
        _failed[point] = failed
        raise failed from error
    finally:
        _owner.reset(token)


def _check_kind(group: str, found: Any) -> None:
    if group in _BASES:
        kind, module, name = _BASES[group]
        if not isinstance(found, getattr(import_module(module), name)):
            raise PluginError(f"is not {kind}: it is of type {type(found).__name__}, no {module}.{name}")
        return
    kind, attributes = _EXPECTED.get(group, ("a module, a class or a function", ()))
    missing = [each for each in attributes if not hasattr(found, each)]
    if missing or not (attributes or isinstance(found, (type, ModuleType)) or callable(found)):
        reason = f"it has no '{missing[0]}'" if missing else f"it is of type {type(found).__name__}"
        raise PluginError(f"is not {kind}: {reason}")


def failures(*groups: str) -> list[PluginError]:
    """What went wrong with plugins so far, in these groups (all when none is given), by plugin name."""
    wanted = [point for point in _failed if not groups or point.group in groups]
    wanted.sort(key=lambda point: (point.group, point.name, point.value))
    return list({id(_failed[point]): _failed[point] for point in wanted}.values())


def failure_of(point: EntryPoint) -> PluginError | None:
    """What went wrong with a plugin, None when nothing did so far."""
    return _failed.get(point)


def note_failure(group: str, name: str, cause: str) -> None:
    """Report a plugin that was imported and cannot be used, in the compile summary and in lists of plugins."""
    loader = entry_points(group).get(name)
    for point in loader.points if loader is not None else ():
        what = f"{group}: plugin '{name}' ({point.value}) of {package_of(point)}"
        failed = PluginError(f"{what} {cause}", remedy="repair or uninstall the package that provides it")
        failed.cause = cause
        _failed[point] = failed


def failure_note(*groups: str) -> str:
    """To append to the remedy of "nobody knows this" errors: which plugins are broken; "" when none is."""
    texts = [error.reason for error in failures(*groups)]
    return f". What is missing may be in a broken plugin: {'; '.join(texts)}" if texts else ""


@dataclass(frozen=True)
class Loader:
    """One declared plugin; call it to import the object it names, once."""

    group: str
    name: str
    points: tuple[EntryPoint, ...]

    def __call__(self) -> Any:
        """The plugin's object.

        Raises:
            PluginError: it fails to import, is of the wrong kind, or different packages declare the same name.
        """
        return self._found

    @cached_property
    def _found(self) -> Any:
        if len({point.value for point in self.points}) > 1:
            where = " and ".join(sorted(f"{package_of(point)} ({point.value})" for point in self.points))
            clash = PluginError(
                f"{self.group}: '{self.name}' is declared more than once: by {where}",
                remedy="uninstall all but one of the packages",
            )
            clash.cause = f"is declared by {where}"
            _failed.update(dict.fromkeys(self.points, clash))
            raise clash
        return load_point(self.points[0])

    @property
    def built_in(self) -> bool:
        """True for parts of this project."""
        return any(map(is_built_in, self.points))


class _Groups(str):
    """Equals the name of each group that begins so: the lists of all packages are read once for all groups."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, group: object) -> bool:
        return isinstance(group, str) and group.startswith(self)


def installed_entry_points(group: str) -> Iterable[EntryPoint]:
    """Those that all packages declare."""
    from importlib.metadata import entry_points  # slow to import, and programs that need no plugin are quick

    return entry_points(group=group)


@cache
def declared() -> dict[str, dict[str, Loader]]:
    """All declared plugins by group and name."""
    found: dict[str, dict[str, dict[str, EntryPoint]]] = {}
    for point in installed_entry_points(group=_Groups(f"{BUILT_IN}.")):
        found.setdefault(point.group, {}).setdefault(point.name, {}).setdefault(point.value, point)
    return {
        group: {name: Loader(group, name, tuple(points[name].values())) for name in sorted(points)}
        for group, points in found.items()
    }


def entry_points(group: str) -> dict[str, Loader]:
    """Declared plugins of `group` by name, sorted; call a value to import it."""
    return declared().get(group, {})


def as_declared(group: str, name: str) -> str:
    """The name of a plugin as it is declared, in lower case where only that is; one that nobody declares stays."""
    known, lower = entry_points(group), str(name).lower()
    return lower if name not in known and lower in known else name


def usable(group: str) -> Iterator[tuple[str, Any]]:
    """(name, object) of every plugin of `group` that can be loaded, built-in parts first; `failures` has the others."""
    for name, loader in sorted(entry_points(group).items(), key=lambda item: not item[1].built_in):
        try:
            found = loader()
        except PluginError:
            continue
        yield name, found


def lookup(group: str, name: str, what: str) -> Any:
    """The object of plugin `name`; `what` is the user's word for its kind ("target").

    Raises:
        UnsupportedError: there is none of that name (the message lists those there are).
        PluginError: it fails to import.
    """
    loaders: dict[str, Callable[[], Any]] = dict(entry_points(group))
    if name not in loaders:
        known = ", ".join(loaders) or "none is installed"
        raise UnsupportedError(f"unknown {what} '{name}'", remedy=f"choose one of: {known}")
    return loaders[name]()
