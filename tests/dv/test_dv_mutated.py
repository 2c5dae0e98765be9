"""Commands with random fields: a code, never an exception; what is accepted runs or says why not."""

from __future__ import annotations

import numpy as np
from dv_data import golden
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bmcompiler.backends.dv.chip import DvChip
from bmcompiler.backends.dv.driver.checks_other import check_command
from bmcompiler.backends.dv.driver.structs import CONV_RUN, CONV_V0
from bmcompiler.runtime import dmp_dv as dv

SMALL = st.sampled_from([0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 0x0101, 0x0202, 0x0303, 0x0503, 0x8000, 0xFFFF])
FIELDS = [name for name in CONV_V0.names or () if CONV_V0[name].kind == "u"]
RUN_FIELDS = [name for name in CONV_RUN.names or () if CONV_RUN[name].kind == "u"]
CHANGES = st.lists(st.tuples(st.sampled_from([*FIELDS, *RUN_FIELDS]), SMALL), max_size=4)


def commands() -> list[NDArray[np.uint8]]:
    data = golden()
    plain = data["cmd_bytes"][data["cmd_kind"] == "conv0"][:, : CONV_V0.itemsize]
    return [*plain, *data["chain_cmd"]]


@given(st.integers(0, len(commands()) - 1), CHANGES, st.booleans())
@settings(max_examples=60, deadline=None)
def test_any_command_gets_a_code(case: int, changes: list[tuple[str, int]], small: bool) -> None:
    raw = commands()[case].copy().view(CONV_V0)
    if small:
        raw["w"], raw["h"] = np.minimum(raw["w"], 12), np.minimum(raw["h"], 12)
    for name, value in changes:
        target = raw if name in FIELDS else raw["run"][:, 0]
        target[name] = value
    ctx = dv.dmp_dv_context_create(DvChip())
    mem = dv.dmp_dv_mem_alloc(ctx, 1 << 21)
    cmdlist = dv.dmp_dv_cmdlist_create(ctx)
    assert mem is not None
    for buf in ("input_buf", "output_buf", "eltwise_buf"):
        raw[buf]["mem"] = np.where(raw[buf]["mem"] == 0, 0, mem.value)
    weights = raw["run"]["weight_buf"]["mem"]
    raw["run"]["weight_buf"]["mem"] = np.where(weights == 0, 0, mem.value)
    code = dv.dmp_dv_cmdlist_add_raw(cmdlist, raw)
    assert code in (0, -1, 22, 95)
    if code == 0:
        code = dv.dmp_dv_cmdlist_commit(cmdlist)
        assert code in (0, -1, 95)
    if code == 0:
        code = dv.dmp_dv_cmdlist_wait(cmdlist, dv.dmp_dv_cmdlist_exec(cmdlist))
        assert code == 0, dv.dmp_dv_get_last_error_message()
    else:
        assert dv.dmp_dv_get_last_error_message()
    assert dv.dmp_dv_cmdlist_release(cmdlist) == dv.dmp_dv_mem_release(mem) == dv.dmp_dv_context_release(ctx) == 0


@given(
    st.integers(0, len(golden()["cmd_len"]) - 1),
    st.lists(st.tuples(st.integers(0, 1895), st.integers(0, 255)), max_size=5),
)
@settings(max_examples=60, deadline=None)
def test_any_bytes_get_a_code(case: int, changes: list[tuple[int, int]]) -> None:
    data = golden()
    raw = data["cmd_bytes"][case][: data["cmd_len"][case]].copy()
    for at, value in changes:
        raw[at % raw.size] = value
    refusal = check_command(raw.tobytes(), DvChip(), lambda handle: 1 << 26)
    assert refusal is None or (refusal.code in (-1, 22, 95) and refusal.text)
