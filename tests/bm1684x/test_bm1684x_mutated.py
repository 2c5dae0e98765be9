"""Damaged commands and programs: they run, or an error of ours says what is wrong."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from bm1684x_golden import PROGRAMS, all_cases, model, streams

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.listing import listing
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.errors import BMError
from bmcompiler.runtime.simulator.bm1684x import Machine, compile_plan
from bmcompiler.runtime.simulator.bm1684x.analysis import analyze


def _damaged(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8)) if data else 0):
        bit = rng.randrange(8 * len(changed))
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def _machine(seed: int) -> Machine:
    rng, machine = np.random.RandomState(seed), Machine()
    machine.globals.map(CHIP.global_base, np.frombuffer(rng.bytes(1 << 22), np.uint8).copy())
    machine.local.bytes[...] = np.frombuffer(rng.bytes(CHIP.lmem_total), np.uint8).reshape(CHIP.lanes, -1)
    return machine


def _run_damaged(count: int, seed: int) -> dict[str, int]:
    rng, machine, cases = random.Random(seed), _machine(seed), all_cases()
    found = {"run": 0, "refused": 0}
    for _ in range(count):
        group = CommandGroup(*(_damaged(rng, data) for data in streams(rng.choice(cases))))
        try:
            compile_plan([group], machine).run()
            found["run"] += 1
        except BMError as error:
            assert len(str(error)) > 10
            found["refused"] += 1
    return found


def test_damaged_commands_run_or_are_refused() -> None:
    found = _run_damaged(700, 3)
    assert min(found.values()) > 100


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(4))
def test_ten_thousand_damaged_commands_run_or_are_refused(seed: int) -> None:
    assert min(_run_damaged(10000, seed).values()) > 1000


@pytest.mark.parametrize("name", PROGRAMS[::3])
def test_damaged_programs_are_analysed_or_refused(name: str) -> None:
    rng, whole = random.Random(name), model(name)
    ((net, stage),) = whole.all_stages()
    for _ in range(15):
        groups = [CommandGroup(*(_damaged(rng, data) for data in group)) for group in stage.groups]
        changed = replace(stage, subnets=[replace(stage.subnets[0], groups=groups)])
        damaged = replace(whole, nets=[replace(net, stages=[changed])])
        with suppress(BMError):
            listing(damaged)
        for look in ("races", "timing", "trace"):
            with suppress(BMError):
                getattr(analyze(damaged), look)()
