"""Which faults are made: chosen by a seed, the same for the same code, spread over groups, modules and kinds."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest

from mutation.faults import Fault, faults
from mutation.harmless import is_harmless
from mutation.targets import GROUPS, Group, asked_about, file_of


@dataclass(frozen=True)
class Place:
    """A fault of one module; `tests` are the folders whose tests may find it."""

    group: str
    module: str
    fault: Fault
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """What the reviewed list calls it."""
        return f"{self.module.removeprefix('bmcompiler.')}:{self.fault.digest()}"


@cache
def faults_of(module: str) -> tuple[Fault, ...]:
    """All of a module."""
    return tuple(faults(ast.parse(file_of(module).read_text(encoding="utf-8"))))


def rank(*words: object) -> str:
    """A draw that does not change when code elsewhere does."""
    return hashlib.sha256("\0".join(map(str, words)).encode()).hexdigest()


def turns(lists: Iterable[Iterable[Place]]) -> Iterator[Place]:
    """One of each list in turn, until all are empty."""
    for row in zip_longest(*lists):
        yield from (each for each in row if each is not None)


def drawn_of_module(group: Group, module: str, seed: int) -> Iterator[Place]:
    """Its places: of each kind one in turn, kinds and places in the order of the draw; none that is known harmless."""
    kinds: dict[str, list[Place]] = {}
    for fault in faults_of(module):
        place = Place(group.name, module, fault, group.tests)
        if not is_harmless(place.name, fault.statement) and asked_about(group.name, fault.function):
            kinds.setdefault(fault.kind, []).append(place)
    for places in kinds.values():
        places.sort(key=lambda place: rank(seed, place.name))
    return turns(kinds[kind] for kind in sorted(kinds, key=lambda kind: rank(seed, module, kind)))


def chosen(seed: int, count: int, only: str = "") -> list[Place]:
    """`count` places; `only`: of modules whose name has that text."""
    drawn = []
    for group in GROUPS:
        modules = [module for module in group.modules() if only in module]
        modules.sort(key=lambda module: rank(seed, module))
        drawn.append(turns([drawn_of_module(group, module, seed) for module in modules]))
    return [place for _, place in zip(range(count), turns(drawn), strict=False)]
