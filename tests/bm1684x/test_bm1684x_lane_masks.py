"""Commands with a mask of lanes write what they do without one, in those lanes; the others keep what they have."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
import varied_commands
from numpy.typing import NDArray
from varied_commands import Command, Machine, commands

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.errors import BMError
from bmcompiler.runtime.simulator.bm1684x import compile_plan

HALF, ALL = (1 << 32) - 1, (1 << CHIP.lanes) - 1
EACH = 4
"""Commands of a kind."""


@cache
def machine() -> Machine:
    return varied_commands.machine("bm1684x")


def _kinds() -> list[tuple[Any, ...]]:
    """Kinds of commands that have masks and write into local memory."""
    return [kind for kind, each in commands("bm1684x").items() if any(map(_is_masked, each))]


def _is_masked(command: Command) -> bool:
    return "lane_mask_lo" in command.fields and _written(command) is not None


def _written(command: Command) -> int | None:
    """Bytes from the begin of local memory to the result; None where that lies elsewhere."""
    fields = command.fields
    if "res0_addr" in fields:
        return fields["res0_addr"]
    at = (fields["dst_addr_lo"] | fields["dst_addr_hi"] << 32) - CHIP.lmem_window
    return at if 0 <= at < CHIP.lanes * CHIP.lmem_size else None


def _moved(command: Command, place: int, mask: int) -> Command:
    """The command with its result at another place of local memory, and a mask."""
    address = place + CHIP.lmem_window
    names = {"dst_addr_lo": address & HALF, "dst_addr_hi": address >> 32, "res0_addr": place}
    masked = {"lane_mask_lo": mask & HALF, "lane_mask_hi": mask >> 32}
    return command._replace(
        fields={**command.fields, **{k: v for k, v in names.items() if k in command.fields}, **masked}
    )


def _local(command: Command) -> NDArray[np.uint8] | None:
    """Local memory after a command, which is taken back; None where it is refused."""
    chip = machine()
    try:
        compile_plan([command.group], chip.memories).run()
        return np.array(chip.memories.local.bytes)
    except BMError:
        return None
    finally:
        for part, before in zip(chip.parts, chip.before):
            part[...] = before


def _asked(kind: tuple[Any, ...]) -> int:
    """How many commands of a kind were asked: each begins in another lane and at another byte than it was recorded."""
    rng, asked = random.Random(str(kind)), 0
    before = machine().before[0].view(np.uint8).reshape(CHIP.lanes, CHIP.lmem_size)
    for command in [each for each in commands("bm1684x")[kind] if _is_masked(each)][:EACH]:
        within = (_written(command) or 0) % CHIP.lmem_size
        place = rng.randrange(1, CHIP.lanes) * CHIP.lmem_size + within + rng.choice((0, 4, 64))
        mask = rng.getrandbits(CHIP.lanes)
        wanted, found = (_local(_moved(command, place, each)) for each in (ALL, mask))
        if wanted is not None and found is not None:
            asked += bool((wanted != before).any())
            kept = [lane for lane in range(CHIP.lanes) if not mask >> lane & 1]
            wanted[kept] = before[kept]
            np.testing.assert_array_equal(found, wanted, err_msg=str(kind))
    return asked


def test_masked_lanes_keep_what_they_have() -> None:
    asked = list(map(_asked, _kinds()))
    assert sum(map(bool, asked)) >= 10  # broadcasts have no known result with a mask
