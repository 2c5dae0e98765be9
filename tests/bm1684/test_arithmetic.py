"""The chip's float arithmetic against scalar references and known values (bm1684.md 6, 7)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from bmcompiler.backends.bm1684.build import CommandBuilder
from bmcompiler.backends.bm1684.chip import local_address
from bmcompiler.backends.bm1684.isa import DataFormat, Direction, Eu, Function, Precision, Task
from bmcompiler.backends.lanes.windows import Window
from bmcompiler.numeric import fp32
from bmcompiler.numeric.ordered import ordered_product
from bmcompiler.runtime.simulator.bm1684 import Memories, compile_plan
from bmcompiler.runtime.simulator.bm1684.windows import area_multiplier, float_convolution

_DENORMAL = np.float32(1e-39)


@pytest.fixture(autouse=True)
def _ordinary_results() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def _floats(*values: float) -> NDArray[np.float32]:
    return np.array(values, np.float32)


def test_division_has_the_errors_of_the_chip() -> None:
    quotients = fp32.divide(_floats(3, 1, 0, 1), _floats(3, 0, 0, 3e38))
    assert quotients[0] == np.float32(0.99999994)
    assert np.isinf(quotients[1])
    assert np.isnan(quotients[2])
    assert quotients[3] == 0
    assert fp32.rsqrt(_floats(0))[0] == pytest.approx(4.459e19, rel=1e-4)


def test_denormals_are_zero_with_their_sign() -> None:
    assert fp32.add(_floats(_DENORMAL), _floats(0))[0] == 0
    flushed = fp32.multiply(_floats(-1e-20), _floats(1e-20))
    assert flushed[0] == 0
    assert np.signbit(flushed[0])


def test_comparisons_with_nan_give_the_second_operand() -> None:
    nan = float("nan")
    assert fp32.maximum(_floats(nan), _floats(1))[0] == 1
    assert np.isnan(fp32.minimum(_floats(1), _floats(nan))[0])


def test_conversion_to_int_truncates_and_saturates() -> None:
    values = _floats(1.9, -1.9, 3e9, -3e9, float("nan"))
    assert fp32.to_int(values).tolist() == [1, -1, 2**31 - 1, -(2**31), 2**31 - 1]


@pytest.mark.parametrize("accumulators", [2, 4])
@pytest.mark.parametrize("scale", [1.0, 1e-20])
def test_ordered_product_adds_in_the_order_of_the_chip(accumulators: int, scale: float) -> None:
    random = np.random.default_rng(accumulators)
    a, b = (random.standard_normal((11, n)).astype(np.float32) * np.float32(scale) for n in (3, 5))
    b *= np.float32(1e-18 if scale < 1 else 1)
    result = ordered_product(a, b, accumulators)
    for m in range(3):
        for n in range(5):
            sums = [np.float32(0)] * accumulators
            for k in range(11):
                product = _flushed(a[k, m] * b[k, n])
                sums[k % accumulators] = _flushed(sums[k % accumulators] + product)
            if accumulators == 4:
                sums = [_flushed(sums[0] + sums[2]), _flushed(sums[1] + sums[3])]
            assert result[m, n].view(np.uint32) == _flushed(sums[0] + sums[1]).view(np.uint32)


def _flushed(x: np.float32) -> np.float32:
    return np.float32(np.copysign(0, x)) if abs(x) < fp32.TINY else x


def test_fast_convolution_is_close_to_the_exact_one() -> None:
    random = np.random.default_rng(1)
    x = random.standard_normal((2, 6, 9, 9)).astype(np.float32)
    kernel = random.standard_normal((3, 3, 6, 8)).astype(np.float32)
    window = Window((3, 3), (2, 2), (1, 1), (1, 1), (1, 1), (1, 1), (5, 5))
    exact, fast = float_convolution(window, x, kernel), float_convolution(window, x, kernel, fast=True)
    assert exact.shape == (2, 8, 5, 5)
    assert np.allclose(exact, fast, rtol=1e-5, atol=1e-5)


def test_average_pooling_derives_its_multiplier_from_the_area() -> None:
    expected = {1: 1, 3: 171, 4: 1, 9: 57, 16: 1, 25: 41, 49: 167, 225: 73, 226: 0, 400: 0}
    assert {area: area_multiplier(area) for area in expected} == expected


def _words(memories: Memories, offset: int, values: NDArray[np.generic]) -> None:
    raw = values.view(np.uint8)
    memories.local.bytes[0, offset : offset + raw.size] = raw


def _local(memories: Memories, offset: int, count: int, dtype: type[np.generic]) -> NDArray[np.generic]:
    return memories.local.bytes[0, offset : offset + count * np.dtype(dtype).itemsize].view(dtype)


def test_shift_amounts_have_six_signed_bits() -> None:
    memories = Memories()
    _words(memories, 0, np.full(4, 0x3FC00000, np.int32))
    _words(memories, 0x1000, np.array([0xFE, 0x72, 0x43, 0x26], np.int32))
    builder = CommandBuilder()
    builder.tiu(
        tsk_typ=Task.TENSOR,
        tsk_eu_typ=Eu.SHIFT,
        opt_shift_typ=0,
        **{f"opt_{name}_prec": Precision.INT32 for name in ("res0", "opd0", "opd1")},
        res0_w=4,
        res0_addr=local_address(0x2000),
        opd0_addr=local_address(0),
        opd1_addr=local_address(0x1000),
    )
    compile_plan(builder.groups(), memories).run()
    assert [hex(int(v)) for v in _local(memories, 0x2000, 4, np.uint32)] == ["0xff00000", "0xff00", "0xfe000000", "0xf"]


def test_the_largest_exponent_of_fp16_is_an_ordinary_one() -> None:
    """What fp16 calls infinities and NaN become numbers, with either sign."""
    memories, bits = Memories(), np.array([0x7C00, 0xFC00, 0x7FFF, 0xFE00, 0x7BFF, 1], np.uint16)
    memories.local.bytes[0, : bits.nbytes] = bits.view(np.uint8)
    builder = CommandBuilder()
    builder.gdma(
        direction=Direction.LOCAL_TO_LOCAL,
        special_func=Function.CONVERT,
        src_data_format=DataFormat.FP16,
        dst_data_format=DataFormat.FP32,
        src_addr=local_address(0),
        dst_addr=local_address(0x1000),
        **{f"{side}_{axis}": bits.size if axis == "w" else 1 for side in ("src", "dst") for axis in "nchw"},
    )
    compile_plan(builder.groups(), memories).run()
    made = _local(memories, 0x1000, bits.size, np.float32)
    assert made.tolist() == [65536.0, -65536.0, 131008.0, -98304.0, 65504.0, 2.0**-24]


@pytest.mark.parametrize(
    ("source", "target", "values", "expected"),
    [
        (DataFormat.FP32, DataFormat.INT8, [0.5, 1.5, -200.0, float("nan")], [0, 2, -128, 127]),
        (DataFormat.FP32, DataFormat.UINT8, [-1.0, 254.5, 300.0, float("inf")], [0, 254, 255, 255]),
        (DataFormat.FP32, DataFormat.FP16, [1.0009765, -1e6, 1e-5, 0.5], [1.0, -np.inf, 0.0, 0.5]),
        (DataFormat.FP32, DataFormat.FP16, [65536.0, 65535.9, 2.0**-14, 6.1e-5], [np.inf, 65504.0, 2.0**-14, 0.0]),
    ],
)
def test_gdma_conversions(source: int, target: int, values: list[float], expected: list[float]) -> None:
    memories = Memories()
    _words(memories, 0, np.array(values, np.float32))
    builder = CommandBuilder()
    size = {f"{side}_{axis}": 4 if axis == "w" else 1 for side in ("src", "dst") for axis in "nchw"}
    builder.gdma(
        direction=Direction.LOCAL_TO_LOCAL,
        special_func=Function.CONVERT,
        src_data_format=source,
        dst_data_format=target,
        src_addr=local_address(0),
        dst_addr=local_address(0x1000),
        **size,
    )
    compile_plan(builder.groups(), memories).run()
    kinds = {DataFormat.INT8: np.int8, DataFormat.UINT8: np.uint8, DataFormat.FP16: np.float16}
    assert _local(memories, 0x1000, 4, kinds[DataFormat(target)]).tolist() == expected
