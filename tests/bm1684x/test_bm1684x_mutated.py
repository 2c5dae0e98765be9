"""Damaged commands and programs: they run, or an error of ours says what is wrong."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from time import process_time

import numpy as np
import pytest
from bm1684x_golden import PROGRAMS, all_cases, model, streams

from bmcompiler.backends.bm1684x import isa
from bmcompiler.backends.bm1684x.asm import listing
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import ITEM_BYTES, Function, Move, Precision, Task
from bmcompiler.backends.bm1684x.instructions import transfers
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.errors import BMError, SimulatorError
from bmcompiler.instructions.isa import Format
from bmcompiler.instructions.order import STREAMS, Place
from bmcompiler.runtime.simulator.bm1684x import Memories, compile_plan
from bmcompiler.runtime.simulator.bm1684x.analysis import analyze
from bmcompiler.runtime.simulator.plan import Plan

MOST_SECONDS = 15
"""Of a damaged command; the slowest of 40,000 took 2.6, with other work on the machine."""


def _damaged(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8)) if data else 0):
        bit = rng.randrange(8 * len(changed))
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def _memories(seed: int) -> Memories:
    rng, memories = np.random.RandomState(seed), Memories()
    memories.globals.map(CHIP.global_base, np.frombuffer(rng.bytes(1 << 22), np.uint8).copy())
    memories.local.bytes[...] = np.frombuffer(rng.bytes(CHIP.lmem_total), np.uint8).reshape(CHIP.lanes, -1)
    return memories


def _run_damaged(count: int, seed: int) -> dict[str, int]:
    rng, memories, cases = random.Random(seed), _memories(seed), all_cases()
    found = {"run": 0, "refused": 0}
    for _ in range(count):
        group = CommandGroup(*(_damaged(rng, data) for data in streams(rng.choice(cases))))
        start = process_time()
        try:
            compile_plan([group], memories).run()
            found["run"] += 1
        except BMError as error:
            assert len(str(error)) > 10
            found["refused"] += 1
        assert process_time() - start < MOST_SECONDS
    return found


@pytest.mark.parametrize("function", [Function.COPY_4_BANKS, Function.BROADCAST_4_BANKS])
def test_transfers_to_four_banks_begin_in_the_place_that_is_known(function: Function) -> None:
    first, end, step = 0x2_0000, 0x2_8000, CHIP.alignment

    def run(address: int) -> None:
        shape, strides = (1, 1, 1, 16), (16, 16, 16, 1)
        source, to = (transfers.Side(at, shape, strides) for at in (CHIP.global_base, address))
        fields = transfers.copy(to, source, Precision.INT8).fields | {"special_func": function}
        compile_plan([CommandGroup(b"", isa.TENSOR.pack(fields))], _memories(1)).run()

    for local in (first, end - step):
        run(transfers.in_window(local))
    for address in (*map(transfers.in_window, (0, first - step, end)), CHIP.global_base + first):
        with pytest.raises(SimulatorError, match=r"transfers to four banks|must be local memory"):
            run(address)


def _broadcast(form: str, lane: int, lanes: int) -> CommandGroup:
    """16 bytes to so many lanes, by a command for tensors or by a general one."""
    to, strides = transfers.in_window(lane * CHIP.lmem_size), (16, 16, 16, 1)
    sides = [transfers.Side(at, (1, c, 1, 16), strides) for at, c in ((to, lanes), (CHIP.global_base, 1))]
    fields = transfers.broadcast(*sides, Precision.INT8).fields
    if form == "general":
        fields |= {"cmd_type": Move.GENERAL, "special_func": 1, "src_c_str": 16}
    return CommandGroup(b"", isa.TENSOR.pack(fields))


@pytest.mark.parametrize("form", ["tensor", "general"])
def test_broadcasts_end_with_the_last_lane_and_a_refusal_names_its_command(form: str) -> None:
    memories = _memories(2)
    for lane in (0, 5, CHIP.lanes - 1):
        compile_plan([_broadcast(form, lane, CHIP.lanes - lane)], memories).run()
        assert (memories.local.bytes[lane:, :16] == memories.globals.area(CHIP.global_base)[:16]).all()
        group = CommandGroup(b"", _broadcast(form, 0, 2).gdma + _broadcast(form, lane, CHIP.lanes - lane + 1).gdma)
        with pytest.raises(SimulatorError, match=r"GDMA command 1: .*leaves the 64 lanes"):
            compile_plan([group], memories)


@pytest.mark.parametrize("precision", [Precision.INT8, Precision.INT16, Precision.FP32])
@pytest.mark.parametrize("size", [64, 68, 1000, CHIP.lmem_size])
@pytest.mark.parametrize("load", [True, False])
def test_a_block_that_ends_its_lane_goes_on_in_the_next(size: int, load: bool, precision: Precision) -> None:
    memories, begin = _memories(4), 6 * CHIP.lmem_size - 64
    sides = [transfers.Side(at, (1, 1, 1, 1), (1, 1, 1, 1)) for at in (transfers.in_window(begin), CHIP.global_base)]
    fields = transfers.copy(*(sides if load else sides[::-1]), precision).fields
    fields |= {"cmd_type": Move.GENERAL, "src_c_str": size // ITEM_BYTES[precision]}
    outside = memories.globals.area(CHIP.global_base)
    before = (memories.local.bytes if not load else outside).reshape(-1).copy()
    compile_plan([CommandGroup(b"", isa.TENSOR.pack(fields))], memories).run()
    inside = memories.local.bytes.reshape(-1)[begin : begin + size]
    assert (inside == outside[:size]).all() and (inside == before[0 if load else begin :][:size]).all()


@pytest.mark.parametrize("precision", [Precision.INT8, Precision.FP32])
@pytest.mark.parametrize("begin", [0, CHIP.lmem_size - 64])
def test_a_block_ends_with_the_last_lane(begin: int, precision: Precision) -> None:
    """One more element is refused before any part is made: a word may ask for four thousand million."""
    to = transfers.Side(transfers.in_window(begin), (1, 1, 1, 1), (1, 1, 1, 1))
    fields = transfers.fill(to, 1, precision).fields | {"cmd_type": Move.GENERAL}
    room = (CHIP.lmem_total - begin) // ITEM_BYTES[precision]
    compile_plan([CommandGroup(b"", isa.TENSOR.pack(fields | {"src_c_str": room}))], Memories())
    for count in (room + 1, 2**32 - 1, 0):
        group = CommandGroup(b"", isa.TENSOR.pack(fields | {"src_c_str": count}))
        with pytest.raises(SimulatorError, match=f"a block of {count} elements does not fit the memory of dst"):
            compile_plan([group], Memories())


def test_a_command_that_fails_when_it_runs_is_named() -> None:
    def fail() -> None:
        raise SimulatorError("no such data")

    steps = [lambda: None, lambda: None, fail, lambda: None]
    places = [Place(3, engine, number) for engine in STREAMS for number in (4, 5)]
    with pytest.raises(SimulatorError, match="group 3, GDMA command 4: no such data"):
        Plan(steps, places).run()


def test_damaged_commands_run_or_are_refused() -> None:
    found = _run_damaged(700, 3)
    assert min(found.values()) > 100


BIG = (1 << 16) - 1
SIZES = {f"{name}_{axis}": size for name, size in (("res0", 60000), ("opd0", BIG)) for axis in "chw"}
WINDOWS = {"opd0_h": 60000, "opd0_w": 60000}
LARGER = {"opd0_h": 60006, "opd0_w": 60006, "opd1_h": 7, "opd1_w": 7}
"""What results of 60,000 rows and columns read, by windows of 1 and of 7."""


@pytest.mark.parametrize(
    ("layout", "fields", "work"),
    [
        (isa.CONV, {"tsk_typ": Task.CONV} | LARGER, "weights"),
        (isa.CONV, {"tsk_typ": Task.CONV, "opd0_prec": Precision.FP32, "res0_c": 64, "opd0_c": 4096} | WINDOWS,
         "products"),
        (isa.CONV, {"tsk_typ": Task.CONV, "opd0_prec": Precision.FP16, "res0_c": 64, "opd0_c": 512} | WINDOWS,
         "half products"),
        (isa.MM2, {"tsk_typ": Task.MATRIX, "tsk_eu_typ": 4, "opd0_prec": Precision.BF16}, "half products"),
        (isa.MM, {"tsk_typ": Task.MATRIX, "tsk_eu_typ": 1, "opd0_prec": Precision.FP32,
                  "opd0_n": 9, "opd0_w": BIG, "opd1_w": BIG}, "products"),
        (isa.MM, {"tsk_typ": Task.MATRIX, "tsk_eu_typ": 1, "opd0_prec": Precision.INT32,
                  "res0_prec": Precision.INT32, "opd0_w": 99, "opd1_w": 99,
                  "opd0_n": BIG}, "long products"),
        (isa.PORD, {"tsk_typ": Task.POOL_OR_DEPTHWISE} | LARGER, "taps"),
        (isa.PORD, {"tsk_typ": Task.POOL_OR_DEPTHWISE, "res0_c": 64, "res0_h": 3185, "res0_w": 3185, "opd0_h": 200,
                    "opd0_w": 200, "opd0_x_ins0": 15, "opd0_y_ins0": 15}, "pixels"),
        (isa.SFU, {"tsk_typ": Task.SFU, "tsk_eu_typ": 12, "opd1_n": BIG, "opd0_prec": Precision.FP32,
                   "res0_prec": Precision.FP32}, "terms"),
    ],
)  # fmt: skip
def test_commands_of_more_work_than_any_layer_are_refused(layout: Format, fields: dict[str, int], work: str) -> None:
    names = {field.name for field in layout.fields}
    whole = {
        "cmd_id": 1,
        "res0_n": 1,
        "res0_prec": Precision.FP32,
        "opd1_h": 1,
        "opd1_w": 1,
        "res_op_x_str": 1,
        "res_op_y_str": 1,
        **SIZES,
    }
    whole |= {"opd1_const": 1, "opd2_const": 1, "opd3_const": 1, "opd1_c": BIG} | fields
    command = layout.pack({name: value for name, value in whole.items() if name in names})
    with pytest.raises(SimulatorError, match=f"command takes [0-9]+ {work}, more than the [0-9]+ of any layer"):
        compile_plan([CommandGroup(command, b"")], Memories()).run()


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
