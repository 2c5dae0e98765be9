"""What the driver refuses, with its return codes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dv_data import golden

from bmcompiler.backends.dv.checks import Refusal, check_conv
from bmcompiler.backends.dv.checks_commit import check_conv_commit
from bmcompiler.backends.dv.checks_other import check_command
from bmcompiler.backends.dv.chip import DvChip
from bmcompiler.backends.dv.commands import Buf, ConvCommand, Pads, Pair, Run

# The golden files label a kernel depth of 0 as they label a map depth of 0.
SAME_LABEL = {"PZ0": "Z0"}


@pytest.mark.parametrize("case", range(len(golden()["cmd_ret"])))
def test_recorded_commands(case: int) -> None:
    data = golden()
    ub_size, kernel, conv_freq, fc_freq, vector, svn = data["cmd_ctx"][case].tolist()
    chip = DvChip(ub_size, kernel, conv_freq, fc_freq, vector, svn_version=svn)
    memory = data["cmd_mem"][case].tolist()
    raw = data["cmd_bytes"][case][: data["cmd_len"][case]].tobytes()
    refusal = check_command(raw, chip, lambda handle: memory[handle - 1])
    code, rule = (refusal.code, refusal.rule) if refusal else (0, "")
    assert code == data["cmd_ret"][case]
    expected = str(data["cmd_rule"][case])
    assert expected in (rule, SAME_LABEL.get(rule, rule))
    assert not refusal or len(refusal.text) > 10


CONV = Run(m=16, weight_buf=Buf(2), conv_enable=1, kernel=Pair(3, 3), conv_pad=Pads(1, 1, 1, 1))
COMMAND = ConvCommand(20, 18, 16, (CONV,), input_buf=Buf(1), output_buf=Buf(3))
BIG = 1 << 26


def refused(command: ConvCommand, chip: DvChip | None = None) -> Refusal | None:
    return check_conv(command, chip or DvChip(), lambda handle: BIG)


def with_run(**fields: Any) -> ConvCommand:
    return replace(COMMAND, runs=(replace(CONV, **fields),))


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"pz": 0}, "PZ0"),
        ({"pool_enable": 2}, "POOL_WITH_CONV"),
        ({"conv_enable": 0, "rectifi_en": 1}, "NO_OP"),
        ({"weight_buf": Buf()}, "WEIGHT_NULL"),
        ({"kernel": Pair(8, 3)}, "KERNEL_SIZE"),
        ({"conv_stride": Pair(1, 0)}, "CONV_STRIDE0"),
        ({"conv_enable": 3, "conv_stride": Pair(1, 0)}, "STRIDE0"),
        ({"conv_enable": 3, "m": 8}, "DW_M_NE_C"),
        ({"pool_enable": 1, "pool_size": Pair(4, 2)}, "MAXPOOL_SIZE"),
        ({"pool_enable": 1, "pool_size": Pair(2, 2), "pool_stride": Pair(0, 2)}, "POOL_STRIDE0"),
        ({"pool_enable": 3}, "POOL_WITH_CONV"),
        ({"pool_enable": 3, "conv_enable": 0}, "POOL_ENABLE"),
        ({"lrn": 0x503}, "LRN_STANDALONE"),
        ({"dilation": Pair(2, 2)}, "DIL_SAME"),
        ({"dilation": Pair(2, 2), "kernel": Pair(2, 3)}, "DIL_EVEN"),
        ({"dilation": Pair(2, 1), "pool_enable": 1, "pool_size": Pair(2, 2)}, "DIL_POOL"),
        ({"weight_fmt": 3, "actfunc": 4}, "QUANT_PRELU"),
    ],
)
def test_rules_of_a_run(fields: dict[str, Any], rule: str) -> None:
    refusal = refused(with_run(**fields))
    assert refusal and (refusal.code, refusal.rule) == (-1, rule)


def test_a_sound_command_is_taken_by_driver_and_kernel() -> None:
    assert refused(COMMAND) is None
    assert check_conv_commit(COMMAND, DvChip(), lambda handle: BIG) is None


def test_dilation_needs_the_same_size() -> None:
    assert refused(with_run(dilation=Pair(2, 2), conv_pad=Pads(2, 2, 2, 2))) is None


def test_the_unified_buffer_limits_chains() -> None:
    wide = replace(CONV, m=64)
    last = replace(wide, conv_enable=0, pool_enable=1, pool_size=Pair(2, 2), pool_stride=Pair(2, 2))
    command = replace(COMMAND, w=60, h=60, runs=(wide, last), topo=2)
    assert refused(command, DvChip(ub_size=1 << 20)) is None
    refusal = refused(command, DvChip(ub_size=500 << 10))
    assert refusal and refusal.rule == "UB_MULTIRUN_OVERFLOW"
    assert "bytes of a unified buffer of 512000" in refusal.text


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"input_buf": Buf(1, BIG - 2 * 20 * 18 * 16 + 2)}, "BUF_SPACE"),
        ({"runs": (replace(CONV, weight_buf=Buf(2, 8)),)}, "BUF_ALIGN16"),
        ({"runs": (replace(CONV, conv_enable=0, pool_enable=4, kernel=Pair(0, 0)),)}, "KERNEL_SIZE"),
    ],
)
def test_the_kernel_asks_more_than_the_driver(change: dict[str, Any], rule: str) -> None:
    command = replace(COMMAND, **change)
    assert refused(command) is None
    refusal = check_conv_commit(command, DvChip(), lambda handle: BIG)
    assert refusal and refusal.rule == rule


@pytest.mark.parametrize(
    ("raw", "code"),
    [(b"", 22), (bytes(8), 22), (np.uint32(7).tobytes() + b"\1\0\0\0", 22), (np.uint32(8).tobytes() + b"\5\0\0\0", 22)],
)
def test_headers_that_cannot_be_right(raw: bytes, code: int) -> None:
    refusal = check_command(raw, DvChip(), lambda handle: 0)
    assert refusal and refusal.code == code


def test_version_1_commands_check_table_then_inner_size() -> None:
    command = replace(COMMAND, u8_table=Buf(4))

    def code(raw: bytes, table_bytes: int) -> tuple[int, str]:
        refusal = check_command(raw, DvChip(), lambda handle: table_bytes if handle == 4 else BIG)
        return (refusal.code, refusal.rule) if refusal else (0, "")

    raw = bytearray(command.encode())
    assert code(bytes(raw), 1536) == (0, "")
    assert code(bytes(raw), 1535) == (22, "BUF_SPACE")
    raw[32:36] = np.uint32(1863).tobytes()
    assert code(bytes(raw), 1535) == (22, "BUF_SPACE")
    assert code(bytes(raw), 1536) == (-1, "SIZE")
