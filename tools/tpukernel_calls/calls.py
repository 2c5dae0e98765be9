"""Recorded calls as they are kept: names, arguments, a seed of memory, commands, and a digest of memory afterwards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_FOLDER = Path(__file__).parents[2] / "tests" / "data"
DATA, KERNELS = _FOLDER / "tpukernel_calls.npz", _FOLDER / "tpukernel_kernels.npz"


class Call(NamedTuple):
    """A call with its arguments in order, and what the vendor's library made of it."""

    name: str
    arguments: list[Any]
    seed: int
    commands: list[tuple[int, bytes]]
    digest: int


def write(calls: Sequence[Call], path: Path = DATA) -> None:
    """All calls, small: one text of the calls, one block of the bytes."""
    manifest = [
        [call.name, call.arguments, call.seed, call.digest, [[e, len(d)] for e, d in call.commands]] for call in calls
    ]
    data = b"".join(data for call in calls for _, data in call.commands)
    text = json.dumps(manifest, separators=(",", ":")).encode()
    np.savez_compressed(path, manifest=np.frombuffer(text, np.uint8), commands=np.frombuffer(data, np.uint8))


def read(path: Path = DATA) -> list[Call]:
    """What `write` wrote."""
    with np.load(path) as file:
        manifest, data, at, found = json.loads(bytes(file["manifest"])), bytes(file["commands"]), 0, []
    for name, arguments, seed, digest, sizes in manifest:
        commands = []
        for engine, size in sizes:
            commands.append((engine, data[at : at + size]))
            at += size
        found.append(
            Call(name, [tuple(one) if isinstance(one, list) else one for one in arguments], seed, commands, digest)
        )
    return found
