"""Random instructions run on the vendor's functional model: a digest of all memory afterwards must be equal.

They cover what the recorded single cases do not: strides, broadcasting, immediates, base lanes, partial 4N and 2N
groups, denormals, NaN and saturation, for every class of instruction.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory_images import global_image, local_image
from numpy.typing import NDArray

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.isa import Engine
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.runtime.simulator.bm1684 import Memories, compile_plan
from bmcompiler.runtime.simulator.memory import GlobalMemory

_FILE = dict(np.load(Path(__file__).parents[1] / "data" / "bm1684_random.npz"))
_CLASSES = sorted(set(_FILE["name"].tolist()))


@pytest.fixture(scope="module")
def images() -> dict[str, NDArray[np.uint8]]:
    return {"bytes": local_image(False), "floats": local_image(True), "global": global_image()}


@pytest.fixture(scope="module")
def memories() -> Memories:
    return Memories(GlobalMemory())


@pytest.mark.parametrize("kind", _CLASSES)
def test_random_instructions_leave_the_same_memory(
    memories: Memories, images: dict[str, NDArray[np.uint8]], kind: str
) -> None:
    memory = images["global"].copy()
    memories.globals.unmap(CHIP.global_base)
    memories.globals.map(CHIP.global_base, memory)
    for number in np.flatnonzero(_FILE["name"] == kind).tolist():
        memories.local.bytes[...] = images["floats" if _FILE["floats"][number] else "bytes"]
        memory[...] = images["global"]
        compile_plan([_group(number)], memories).run()
        digest = hashlib.sha256(memories.local.bytes.tobytes())
        digest.update(memory.tobytes())
        assert digest.digest() == _FILE["digest"][number].tobytes(), f"case {number}"


def _group(number: int) -> CommandGroup:
    command: Any = _FILE["command"][number].tobytes()
    tiu = _FILE["engine"][number] == Engine.TIU
    return CommandGroup(command, b"") if tiu else CommandGroup(b"", command)
