"""Every note of the reference about its 13 functions, broken once: the error quotes it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from bmcompiler.errors import UsageError
from bmcompiler.tpukernel import DT_FP32, DT_INT16, DT_UINT8, DT_UINT16, FUNCTIONS, LOCAL_MEM_SIZE, TABLE, recording

LANE = LOCAL_MEM_SIZE
TAYLOR = dict(dst_addr=0x1000, src_addr=0x2000, coeff_addr=0x3000, shape=(1, 64, 4, 4), num=10, dtype=DT_FP32)
LOOKUP = dict(
    **dict(dst_addr=0x1000, src_addr=0x2000, table_addr=0x3000, shape=(1, 64, 4, 4), len=256),
    **dict(dst_dtype=DT_FP32, src_dtype=DT_UINT8),
)
BCAST = dict(dst_addr=0, npu_num=64, start=0, step=1, num=100)
DISTRIBUTE = dict(dst_addr=0, start=0, step=1, num=100)
GENERAL = dict(dst_addr=0, buffer_addr=0x4000, npu_num=64, start=0, step=1, num=100)
GOOD: dict[str, dict[str, Any]] = {
    "fp_taylor": TAYLOR,
    "table_lookup": LOOKUP,
    "arithmetic_sequence_bcast": BCAST,
    "arithmetic_sequence_distribute": DISTRIBUTE,
    "arithmetic_sequence_general": GENERAL,
}
ALIGNED = "64-byte aligned layout"
BROKEN: list[tuple[str, dict[str, Any], str]] = [
    ("fp_taylor", dict(src_addr=LANE), f"dst 和 src 从同一个 NPU 开始,都是 {ALIGNED}"),
    ("fp_taylor", dict(dst_addr=0x1004), f"都是 {ALIGNED}"),
    ("fp_taylor", dict(coeff_addr=LANE), f"coeff 从 NPU 0 开始,shape 是 [1, NPU_NUM, 1, num],{ALIGNED}"),
    ("fp_taylor", dict(coeff_addr=0x3020), "coeff 从 NPU 0 开始"),
    ("fp_taylor", dict(num=1), "num 大于等于 2"),
    ("fp_taylor", dict(shape=(1, 64, 0, 4)), "的取值范围是 [1, 65535]"),
    ("fp_taylor", dict(shape=(65536, 64, 1, 4)), "的取值范围是 [1, 65535]"),
    ("table_lookup", dict(src_addr=LANE), f"dst 和 src 从同一个 NPU 开始,都是 {ALIGNED}"),
    ("table_lookup", dict(src_addr=0x2001), f"都是 {ALIGNED}"),
    ("table_lookup", dict(table_addr=LANE), f"table 从 NPU 0 开始,shape 是 [1, NPU_NUM, 1, len],{ALIGNED}"),
    ("table_lookup", dict(table_addr=0x3004), "table 从 NPU 0 开始"),
    ("table_lookup", dict(shape=(0, 64, 4, 4)), "的取值范围是 [1, 65535]"),
    ("table_lookup", dict(shape=(1, 64, 256, 256)), "shape->h * shape->w 小于等于 65535"),
    ("table_lookup", dict(src_dtype=DT_INT16), "src_dtype 的有效取值是 DT_UINT16 和 DT_UINT8"),
    ("arithmetic_sequence_bcast", dict(dst_addr=4), f"dst 的 shape 是 [1, npu_num, 1, num],{ALIGNED}"),
    ("arithmetic_sequence_bcast", dict(dst_addr=LANE), "则 npu_num 小于等于 NPU_NUM - X"),
    ("arithmetic_sequence_bcast", dict(num=0), "num 大于 0"),
    ("arithmetic_sequence_distribute", dict(dst_addr=LANE), "dst 从 NPU 0 开始,compact layout"),
    ("arithmetic_sequence_distribute", dict(dst_addr=2), "dst 从 NPU 0 开始,compact layout"),
    ("arithmetic_sequence_distribute", dict(num=0), "num 大于 0"),
    ("arithmetic_sequence_general", dict(dst_addr=4), f"dst 的 shape 是 [1, npu_num, 1, num], {ALIGNED}"),
    ("arithmetic_sequence_general", dict(dst_addr=LANE), "要求 dst 和 buffer 从 NPU 0 开始"),
    ("arithmetic_sequence_general", dict(buffer_addr=LANE), "要求 dst 和 buffer 从 NPU 0 开始"),
    ("arithmetic_sequence_general", dict(buffer_addr=0x4002), "buffer 的 shape 是[1, NPU_NUM, 1, 1], compact layout"),
    ("arithmetic_sequence_general", dict(npu_num=0), "npu_num 大于 0"),
    ("arithmetic_sequence_general", dict(num=-1), "num 大于 0"),
]
for name, words in (("exp", 32), ("log", 32), ("erf", 10), ("sin", 32), ("cos", 32), ("tan", 32), ("arcsin", 32)):
    GOOD[f"load_fp32_{name}_coeff"] = dict(coeff_addr=0)
    for address in (LANE, 32, LANE - 32):
        quoted = f"coeff 从 NPU 0 开始,shape 是 [1, NPU_NUM, 1, {words}],{ALIGNED}"
        BROKEN.append((f"load_fp32_{name}_coeff", dict(coeff_addr=address), quoted))
GOOD["load_fp32_exp_table"] = dict(table_addr=0)
for address in (LANE, 32, LANE - 64):
    quoted = f"table 从 NPU 0 开始,shape 是 [1, NPU_NUM, 1, 192],{ALIGNED}"
    BROKEN.append(("load_fp32_exp_table", dict(table_addr=address), quoted))


@pytest.mark.parametrize("name", GOOD)
def test_what_keeps_all_notes_is_recorded(name: str) -> None:
    with recording() as recorder:
        FUNCTIONS[f"tpu_bdc_{name}"](**GOOD[name])
    assert recorder.commands


@pytest.mark.parametrize(("name", "change", "note"), BROKEN)
def test_a_broken_note_is_quoted(name: str, change: dict[str, Any], note: str) -> None:
    with recording(), pytest.raises(UsageError) as error:
        FUNCTIONS[f"tpu_bdc_{name}"](**{**GOOD[name], **change})
    message = str(error.value)
    assert message.startswith(f"tpu_bdc_{name}: ") and note in message


def test_every_note_is_broken_by_some_test() -> None:
    quoted = {(f"tpu_bdc_{name}", note) for name, _, note in BROKEN}
    for row in TABLE.values():
        for note in {*(rule.note for rule in row.rules), row.shape_note} - {""}:
            assert any(name == row.name and part in note for name, part in quoted), (row.name, note)
    assert len({name for name, _ in quoted}) == 13


def test_both_types_of_index_are_taken() -> None:
    with recording():
        FUNCTIONS["tpu_bdc_table_lookup"](**{**LOOKUP, "src_dtype": DT_UINT16})


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("tpu_bdc_fp_add_C", (0, 0, 1.5, (1, 1, 1, 1), None, None, DT_FP32), "write scalar_t(f32=1.5)"),
        ("tpu_bdc_fp_add_C", (0, 0, 1, (1, 1, 1, 1), None, None), "needs 'dtype'"),
        ("tpu_bdc_abs", (0, None, (1, 1, 1, 1), None, None, DT_FP32), "src_addr must not be NULL"),
        (
            "tpu_bdc_abs",
            (0, 1 << 24, (1, 1, 1, 1), None, None, DT_FP32),
            "src_addr is a local_addr_t, from 0x0 to 0xff",
        ),
        ("tpu_bdc_abs", (0, 0, (1, 1, 300, 300), None, None, DT_FP32), "ends at byte 360000 of its lane"),
        ("tpu_bdc_abs", (0, 0, (1, 1, 1), None, None, DT_FP32), "shape is a dim4 of 4 integers"),
        ("tpu_bdc_abs", (0, 0, (1, 1, 1, 1), None, None, 4), "dtype is no data_type_t"),
        ("tpu_bdc_abs", (0, 4, (1, 1, 1, 1), None, None, DT_FP32), "src must begin at a multiple of 64 bytes"),
        ("tpu_bdc_abs", (0, 0, (1, 1, 1, 1), (1, 1, 1, -1), None, DT_FP32), "no negative strides"),
        ("tpu_gdma_cpy_S2L", (0, 64, (1, 1, 1, 1), None, None, DT_FP32), "src_addr is a system_addr_t"),
        ("tpu_bdc_fp32_silu", (0, 0, 64, 128, 192, 256, (1, 1, 1, 1)), "src and dst must be different tensors"),
        ("tpu_bdc_fp32_exp", (0, 64, 256, 256, 512, 640, (1, 1, 1, 1)), "must be different tensors"),
        ("tpu_bdc_fp32_exp", (0, 64, 256, 512, 1024, 640, (1, 1, 8, 8)), "dst and src overlap"),
    ],
)
def test_errors_name_the_function_and_the_argument(name: str, arguments: tuple[Any, ...], message: str) -> None:
    with recording(), pytest.raises(UsageError) as error:
        FUNCTIONS[name](*arguments)
    assert str(error.value).startswith(name) and message in str(error.value)


def test_commands_need_a_kernel_around_them() -> None:
    with pytest.raises(UsageError, match=r"inside a kernel.*@kernel"):
        FUNCTIONS["tpu_poll"]()
    assert FUNCTIONS["tpu_npu_num"]() == 64


def test_functions_have_the_signature_of_their_prototype() -> None:
    assert list(inspect.signature(FUNCTIONS["tpu_bdc_fp_taylor"]).parameters) == list(TAYLOR)
