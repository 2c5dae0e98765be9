"""Synchronisation ids in serial mode, parallel groups and streams (bm1880.md 6)."""

from __future__ import annotations

import pytest

from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_NULL,
    FMT_I8,
    Bmk1880Context,
    Op,
    bmk1880_acquire_cmdbuf,
    bmk1880_add_dependency,
    bmk1880_cpu_op,
    bmk1880_create_streams,
    bmk1880_destroy_streams,
    bmk1880_gdma_load,
    bmk1880_gdma_store,
    bmk1880_mul_param_t,
    bmk1880_parallel_disable,
    bmk1880_parallel_enable,
    bmk1880_register,
    bmk1880_reset,
    bmk1880_set_stream,
    bmk1880_tl_prealloc_align,
    bmk1880_tpu_mul,
    shape_t4,
)
from bmcompiler.backends.bm1880.cmdbuf import records
from bmcompiler.backends.bm1880.isa import GDMA, TIU, Engine
from bmcompiler.errors import EncodingError


class Program:
    """Short names for the instructions of the examples: L load, M mul, S store."""

    def __init__(self) -> None:
        self.ctx: Bmk1880Context = bmk1880_register()
        self.t = bmk1880_tl_prealloc_align(self.ctx, 0, shape_t4(1, 3, 4, 5), FMT_I8)

    def run(self, calls: str) -> list[Op]:
        """Issue one instruction per letter, `{` and `}` bound a parallel group."""
        return [op for op in map(self._one, calls) if op is not None]

    def _one(self, letter: str) -> Op | None:
        if letter == "{":
            bmk1880_parallel_enable(self.ctx)
        elif letter == "}":
            bmk1880_parallel_disable(self.ctx)
        elif letter == "L":
            return bmk1880_gdma_load(self.ctx, self.t, 0, CTRL_NULL)
        elif letter == "S":
            return bmk1880_gdma_store(self.ctx, self.t, 0, CTRL_NULL)
        else:
            return bmk1880_tpu_mul(self.ctx, bmk1880_mul_param_t(None, self.t, self.t, self.t, 1))
        return None

    def ids(self) -> str:
        """The ids as the facts write them: G1(0) = GDMA instruction 1 waiting for nothing."""
        out = []
        for engine, payload, _ in records(bmk1880_acquire_cmdbuf(self.ctx)):
            if engine == Engine.TPU:
                fields = TIU.unpack(payload)
                out.append(f"T{fields['cmd_id_tpu']}({fields['cmd_id_gdma']})")
            elif engine == Engine.GDMA:
                fields = GDMA.unpack(payload)
                out.append(f"G{fields['cmd_id_gdma']}({fields['cmd_id_tpu']})")
            else:
                out.append("CPU")
        return " ".join(out)


@pytest.fixture
def p() -> Program:
    return Program()


def test_serial(p: Program) -> None:
    p.run("LLMSLLMMS")
    assert p.ids() == "G1(0) G2(0) T1(2) G3(1) G4(0) G5(0) T2(5) T3(0) G6(3)"


def test_parallel_groups(p: Program) -> None:
    p.run("LL{MLL}{SM}S")
    assert p.ids() == "G1(0) G2(0) T1(2) G3(0) G4(0) G5(1) T2(4) G6(2)"


def test_streams(p: Program) -> None:
    bmk1880_create_streams(p.ctx, 2)
    p.run("LLMS")
    bmk1880_set_stream(p.ctx, 1)
    p.run("LLMS")
    assert p.ids() == "G1(0) G2(0) T1(2) G3(1) G4(0) G5(0) T2(5) G6(2)"


def test_dependencies_between_streams(p: Program) -> None:
    bmk1880_create_streams(p.ctx, 2)
    load, mul = p.run("LM")
    bmk1880_set_stream(p.ctx, 1)
    (store,) = p.run("S")
    bmk1880_add_dependency(p.ctx, mul, store)
    (last,) = p.run("M")
    bmk1880_add_dependency(p.ctx, load, last)
    # the last mul follows store G2 of its stream; load G1 was already required by T1
    assert p.ids() == "G1(0) T1(1) G2(1) T2(2)"


def test_streams_are_a_barrier_on_both_ends(p: Program) -> None:
    p.run("LM")
    bmk1880_create_streams(p.ctx, 2)
    p.run("L")
    bmk1880_set_stream(p.ctx, 1)
    p.run("ML")
    bmk1880_destroy_streams(p.ctx)
    p.run("MS")
    assert p.ids() == "G1(0) T1(1) G2(1) T2(0) G3(2) T3(3) G4(3)"


def test_cpu_record_restarts_both_counters(p: Program) -> None:
    p.run("LM")
    bmk1880_cpu_op(p.ctx, "softmax", b"\1\2")
    p.run("LM")
    assert p.ids() == "G1(0) T1(1) CPU G1(0) T1(1)"


def test_cpu_record_in_streams(p: Program) -> None:
    bmk1880_create_streams(p.ctx, 2)
    (first,) = p.run("L")
    bmk1880_cpu_op(p.ctx, "softmax")
    (mul,) = p.run("M")
    bmk1880_add_dependency(p.ctx, first, mul)
    assert p.ids() == "G1(0) CPU T1(0)"


def test_cpu_record_in_a_parallel_group(p: Program) -> None:
    p.run("L{M")
    bmk1880_cpu_op(p.ctx, "softmax")
    p.run("LM}S")
    assert p.ids() == "G1(0) T1(1) CPU G1(0) T1(0) G2(1)"


def test_reset_returns_to_serial_mode_and_id_1(p: Program) -> None:
    p.run("L{ML")
    bmk1880_reset(p.ctx)
    p.run("LM")
    assert p.ids() == "G1(0) T1(1)"


def test_ids_wrap_from_65535_to_1() -> None:
    p = Program()
    for _ in range(65535):
        p.ctx.sync.issue(Engine.GDMA, 0)
    p.run("LM")
    assert p.ids() == "G1(0) T1(1)"


def test_acquire_twice_gives_the_same_bytes(p: Program) -> None:
    bmk1880_create_streams(p.ctx, 1)
    p.run("LMS")
    assert p.ids() == p.ids() == "G1(0) T1(1) G2(1)"


def test_wrong_use_is_refused(p: Program) -> None:
    for call in (
        lambda: bmk1880_parallel_disable(p.ctx),
        lambda: bmk1880_destroy_streams(p.ctx),
        lambda: bmk1880_set_stream(p.ctx, 0),
        lambda: bmk1880_create_streams(p.ctx, 0),
    ):
        with pytest.raises(EncodingError, match="bmk1880_"):
            call()
    p.run("{")
    load, mul = p.run("LM")
    for call in (
        lambda: bmk1880_parallel_enable(p.ctx),
        lambda: bmk1880_create_streams(p.ctx, 2),
        lambda: bmk1880_add_dependency(p.ctx, load, mul),
        lambda: bmk1880_add_dependency(p.ctx, mul, load),
    ):
        with pytest.raises(EncodingError, match="bmk1880_"):
            call()


def test_dependencies_that_hold_anyway_are_accepted(p: Program) -> None:
    load, mul, store = p.run("LMS")
    bmk1880_add_dependency(p.ctx, load, mul)
    bmk1880_add_dependency(p.ctx, load, store)
    bmk1880_create_streams(p.ctx, 1)
    (later,) = p.run("M")
    bmk1880_add_dependency(p.ctx, store, later)
    assert p.ids() == "G1(0) T1(1) G2(1) T2(2)"
    (next_load,) = p.run("L")
    bmk1880_acquire_cmdbuf(p.ctx)
    with pytest.raises(EncodingError, match="acquired already"):
        bmk1880_add_dependency(p.ctx, later, next_load)
