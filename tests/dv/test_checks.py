"""What the driver refuses, with its return codes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dv_data import golden

from bmcompiler.backends.dv.chip import DvChip
from bmcompiler.backends.dv.driver.checks import Refusal, _dilated, check_conv, limits
from bmcompiler.backends.dv.driver.checks_commit import check_conv_commit
from bmcompiler.backends.dv.driver.checks_other import check_command
from bmcompiler.backends.dv.driver.commands import Buf, ConvCommand, Pads, Pair, Run
from bmcompiler.backends.dv.driver.geometry import Extent
from bmcompiler.backends.dv.driver.structs import IPU_V0
from bmcompiler.errors import EncodingError

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


FIELDS: list[tuple[str, list[Any], list[Any]]] = [
    ("conv_pad", [Pads(127, 255, 0, 0), Pads(0, 0, 127, 255)],
     [Pads(128, 0, 0, 0), Pads(0, 256, 0, 0), Pads(0, 0, 128, 0), Pads(0, 0, 0, 256), Pads(0, 0, 0, -1)]),
    ("pool_pad", [Pads(127, 255, 127, 255)], [Pads(0, 256, 0, 0)]),
    *((name, [Pair(1, 255), Pair(255, 1)], [Pair(256, 1), Pair(1, 256), Pair(-1, 1), Pair(1, -1)])
      for name in ("kernel", "conv_stride", "dilation", "pool_size", "pool_stride")),
    ("m", [0, 65535], [-1, 65536]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "taken", "wrong"), FIELDS)
def test_fields_hold_what_their_bits_hold(name: str, taken: list[Any], wrong: list[Any]) -> None:
    for value in taken:
        command = with_run(**{name: value})
        assert ConvCommand.decode(command.encode()) == command
    for value in wrong:
        with pytest.raises(EncodingError, match=name):
            with_run(**{name: value}).encode()


def test_sizes_of_nothing_are_written() -> None:
    """What is 0 stands for something else when it is read."""
    for name in ("kernel", "conv_stride", "dilation", "pool_size", "pool_stride"):
        assert len(with_run(**{name: Pair(0, 0)}).encode()) == len(COMMAND.encode())


def test_a_command_has_one_to_thirty_two_runs() -> None:
    for count in (1, 32):
        command = replace(COMMAND, runs=(CONV,) * count, topo=(1 << count) - 1)
        assert len(ConvCommand.decode(command.encode()).runs) == count
    for count in (0, 33):
        with pytest.raises(EncodingError, match=f"is not for {count} runs"):
            replace(COMMAND, runs=(CONV,) * count, topo=(1 << count) - 1).encode()


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


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"input_buf": Buf()}, "INPUT_NULL"),
        ({"output_buf": Buf()}, "OUTPUT_NULL"),
        ({"z": 0}, "Z0"),
        ({"c": 20}, ""),
        ({"w": 2, "h": 1, "runs": (replace(CONV, conv_pad=Pads()),)}, "INPUT_TOO_SMALL"),
        ({"runs": (replace(CONV, m=0),)}, "ZERO_OUTPUT"),
        ({"runs": (replace(CONV, conv_enable=0, lrn=0x503),)}, ""),
        ({"c": 20, "runs": (replace(CONV, conv_enable=0, lrn=0x503),)}, "LRN_C"),
        ({"runs": (CONV, CONV), "topo": 2, "z": 2}, "MULTIRUN_INVALID"),
        ({"runs": (replace(CONV, dilation=Pair(1, 2)), CONV), "topo": 2}, "DIL_MULTIRUN"),
        ({"w": 500, "h": 500, "c": 64, "runs": (replace(CONV, m=64), CONV), "topo": 2}, "UB_RUN_TILES"),
        ({"w": 1, "h": 1024, "c": 4096}, "UB_TOO_SMALL_FOR_TILE"),
    ],
)
def test_rules_of_a_command(fields: dict[str, Any], rule: str) -> None:
    command = replace(COMMAND, **fields)
    refusal = refused(command)
    assert (refusal.rule if refusal else "") == rule
    without_memory = limits(replace(command, input_buf=Buf(), output_buf=Buf()), DvChip())
    assert (without_memory.rule if without_memory else "") == ("" if rule.endswith("NULL") else rule)


def test_dilated_pads_need_a_revision_of_their_own() -> None:
    """dv.md 1.7 rule 10: 93, on the small board 83."""
    run = replace(CONV, dilation=Pair(30, 30), conv_pad=Pads(30, 30, 30, 30))
    command = replace(COMMAND, runs=(run,))
    for chip, rule in (
        (DvChip(), ""),
        (DvChip(svn_version=83), "SVN_DIL_PAD"),
        (DvChip(svn_version=83, zia_c2=True), ""),
    ):
        refusal = refused(command, chip)
        assert (refusal.rule if refusal else "") == rule


@pytest.mark.parametrize(
    "wide", [Pads(left=30, right=9), Pads(left=9, right=30), Pads(top=30, bottom=9), Pads(top=9, bottom=30)]
)
def test_each_pad_of_a_dilated_kernel_may_be_the_wide_one(wide: Pads) -> None:
    run = replace(CONV, kernel=Pair(1, 1), dilation=Pair(2, 2), conv_pad=wide)
    found = [refusal.rule for refusal in _dilated(COMMAND, run, Extent(9, 9, 1, 8), DvChip(svn_version=83))]
    assert "SVN_DIL_PAD" in found


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, 0),
        ({"rect_width": 4095}, -1),
        ({"fmt_wr": 7}, -1),
        ({"gidx": 0}, -1),
        ({"use_tex": 0}, -1),
        ({"use_tex": 0, "use_rd": 1, "stride_rd": 400}, 0),
        ({"use_rd": 1, "stride_rd": 0}, -1),
        ({"stride_wr": -32769}, -1),
        ({"tex_height": 4095}, 22),
    ],
)
def test_image_commands(fields: dict[str, int], code: int) -> None:
    command = np.zeros(1, IPU_V0)
    command["header"] = (224, 3, 0, (0, 0))
    for name in ("tex", "rd", "wr"):
        command[name]["mem"] = 1
    values = {"fmt_wr": 2, "rect_width": 100, "rect_height": 100, "tex_width": 50, "tex_height": 50, "use_tex": 1}
    for name, value in {**values, "ridx": 2, "gidx": 1, "bidx": 0, "fmt_tex": 1, "stride_wr": 600, **fields}.items():
        command[name] = value
    refusal = check_command(command.tobytes(), DvChip(), lambda handle: 60000)
    assert (refusal.code if refusal else 0) == code


@pytest.mark.parametrize("seed", range(12))
def test_an_input_needs_a_byte_per_element_by_the_driver_and_two_by_the_kernel(seed: int) -> None:
    rng = np.random.default_rng(seed)
    w, h, c, z = (int(size) for size in (*rng.integers(2, 40, 3), rng.integers(1, 5)))
    run = Run(m=5, weight_buf=Buf(2), conv_enable=1, kernel=Pair(1, 1))
    command = ConvCommand(w, h, c, (run,), input_buf=Buf(1), output_buf=Buf(3), z=z)
    chip = DvChip(1 << 20, 7, 0, 0, 0, svn_version=1)
    for check, need in ((check_conv, w * h * c * z), (check_conv_commit, 2 * w * h * c * z)):
        enough, short = (check(command, chip, {1: size, 2: BIG, 3: BIG}.__getitem__) for size in (need, need - 1))
        assert enough is None
        assert short is not None and "input_buf" in short.text
