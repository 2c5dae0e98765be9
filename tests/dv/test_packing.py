"""Weight streams byte for byte against the vendor's packers, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dv_data import golden, halves, packed_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.backends.dv.formats.layout import nchw_to_whc8, whc8_to_nchw
from bmcompiler.backends.dv.formats.packing import (
    pack_conv,
    pack_dilated,
    pack_fc,
    unpack_conv,
    unpack_dilated,
    unpack_fc,
    whc8_order,
)
from bmcompiler.backends.dv.formats.packing_sizes import conv_size, dilated_size, fc_size
from bmcompiler.errors import EncodingError


@pytest.mark.parametrize("case", packed_cases(), ids=lambda case: case["id"])
def test_packed_bytes(case: dict[str, Any]) -> None:
    data, name, dims = golden(), case["id"], case["dims"]
    weights, bias = data[f"{name}_weights"], data[f"{name}_bias"]
    quant, prelu = data.get(f"{name}_quant"), data.get(f"{name}_prelu")
    if case["kind"] == "fc":
        packed = pack_fc(weights, bias, tuple(dims[:3]), tuple(dims[3:]), quant)
    else:
        c, kx, ky, m = dims
        pack = pack_conv if case["kind"] == "conv" else pack_dilated
        packed = pack(weights.reshape(m, c, ky, kx), bias, quant, prelu)
    assert packed.size == case["packed_size"]
    np.testing.assert_array_equal(packed, data[f"{name}_packed"])


def rows(packed: np.ndarray) -> dict[int, str]:
    """Rows of 16 bytes that are not zero."""
    table = packed.reshape(-1, 16)
    return {16 * at: table[at].tobytes().hex(" ") for at in np.nonzero(table.any(1))[0].tolist()}


def test_documented_example_of_a_seventh_column() -> None:
    """dv.md 3.7 E: indices 1 to 49 of one 7x7 kernel."""
    quant = halves([*range(19), *[0] * 237])
    found = rows(pack_conv(np.arange(1, 50, dtype=np.uint8).reshape(1, 1, 7, 7), halves([0.5]), quant))
    assert found[0x210] == "23 00 00 0e 00 00 2a 00 00 15 00 00 31 00 00 1c"
    assert found[0x220] == "00 07 00 00 00 00 00 00 00 00 00 00 00 00 01 02"
    assert found[0x250] == "28 29 2b 2c 2d 2e 2f 30 00 00 00 00 00 00 00 00"


def test_documented_example_of_a_kernel_below_its_square() -> None:
    """dv.md 3.7 F: 2 x 4 lies at the bottom left of 5 x 5."""
    quant = halves([*range(19), *[0] * 237])
    found = rows(pack_conv(np.arange(1, 9, dtype=np.uint8).reshape(1, 1, 4, 2), halves([0.5]), quant))
    assert found[0x240] == "01 02 00 00 00 00 03 04 00 00 00 00 05 06 00 00"
    assert found[0x250] == "00 00 07 08 00 00 00 00 00 00 00 00 00 00 00 00"


def test_documented_example_of_depthwise_slopes() -> None:
    """dv.md 3.7 G."""
    weights = halves(np.arange(1, 19)).reshape(2, 1, 3, 3)
    found = rows(pack_conv(weights, halves([0.5, 1.5]), prelu=halves([0.25, 0.125])))
    assert found[0x10] == "00 34 00 30" + " 00" * 12
    assert found[0x110] == "00 00 00 00 00 00 00 00 00 00 00 00 00 49 80 49"


def test_documented_example_of_taps() -> None:
    """dv.md 3.7 I: the bias follows only the third tap."""
    quant = halves([*range(19), *[0] * 237])
    weights = np.array([1, 2, 3], np.uint8).reshape(1, 1, 1, 3)
    found = rows(pack_dilated(weights, halves([0.5]), quant))
    assert found[0x250] == "00 00 01" + " 00" * 13
    assert found[0x2C0] == "00 38" + " 00" * 14
    assert found[0x310] == "00 00 03" + " 00" * 13


def test_documented_example_of_columns_first() -> None:
    """dv.md 3.7 L: pixels column by column, channels inside."""
    quant = halves([*range(19), *[0] * 237])
    packed = pack_fc(np.arange(1, 9, dtype=np.uint8), halves([0.5]), (2, 2, 2), (1, 1, 1), quant)
    assert rows(packed)[0x200] == "01 05 03 07 02 06 04 08" + " 00" * 8


streams = st.tuples(
    st.integers(1, 70), st.integers(1, 7), st.integers(1, 7), st.integers(1, 19), st.booleans(), st.booleans()
)


@given(streams, st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_streams_unpack_to_what_was_packed(case: tuple[int, int, int, int, bool, bool], seed: int) -> None:
    c, kx, ky, m, quantized, prelu = case
    random = np.random.default_rng(seed)
    quant = random.integers(0, 1 << 16, 256).astype(np.uint16) if quantized else None
    kind = np.uint8 if quantized else np.uint16
    weights = random.integers(0, np.iinfo(kind).max, (m, c, ky, kx)).astype(kind)
    bias, slopes = random.integers(0, 1 << 16, (2, m)).astype(np.uint16)
    values = weights if quant is None else quant[weights]

    packed = pack_conv(weights, bias, quant, slopes if prelu else None)
    assert packed.size == conv_size(c, kx, ky, m, quantized, prelu)
    found = unpack_conv(packed, c, kx, ky, m, quantized, prelu)
    np.testing.assert_array_equal(found.weights, values)
    np.testing.assert_array_equal(found.bias, bias)
    assert (found.prelu is not None) == prelu
    if found.prelu is not None:
        np.testing.assert_array_equal(found.prelu, slopes)

    packed = pack_dilated(weights, bias, quant)
    assert packed.size == dilated_size(c, kx, ky, m, quantized)
    found = unpack_dilated(packed, c, kx, ky, m, quantized)
    np.testing.assert_array_equal(found.weights, values)
    np.testing.assert_array_equal(found.bias, bias)


@given(st.tuples(*[st.integers(1, 20), st.integers(1, 4), st.integers(1, 4)] * 2), st.booleans())
@settings(max_examples=30, deadline=None)
def test_fully_connected_rows_follow_the_maps(dims: tuple[int, ...], quantized: bool) -> None:
    """The product of packed weights with a WHC8 map is the WHC8 form of the product in plain order."""
    random = np.random.default_rng(sum(dims))
    inputs, outputs = dims[:3], dims[3:]
    n_in, n_out = int(np.prod(inputs)), int(np.prod(outputs))
    quant = halves(random.integers(-4, 5, 256)) if quantized else None
    numbers = random.integers(0, 200, (n_out, n_in))
    weights = numbers.astype(np.uint8) if quantized else halves(numbers - 100)
    bias = halves(random.integers(-9, 9, n_out))
    packed = pack_fc(weights, bias, inputs, outputs, quant)
    assert packed.size == fc_size(n_in, n_out, quantized)
    found = unpack_fc(packed, n_in, n_out, quantized)
    values = (weights if quant is None else quant[weights]).view(np.float16).astype(float)
    x = random.integers(-5, 5, (1, *inputs)).astype(float)
    plain = (values @ x.reshape(-1)).reshape(1, *outputs)
    on_device = found.weights.view(np.float16).astype(float) @ nchw_to_whc8(x)[0]
    np.testing.assert_array_equal(on_device, nchw_to_whc8(plain)[0])
    np.testing.assert_array_equal(found.bias, bias)


def test_whc8_example() -> None:
    """dv.md 2: 2 x 2 x 9, columns first, the ninth channel behind."""
    maps = np.arange(36).reshape(1, 9, 2, 2)  # value = channel * 4 + y * 2 + x
    flat = nchw_to_whc8(maps)[0]
    assert flat[8] == 2 and flat[16] == 1 and flat[24] == 3 and flat[32:].tolist() == [32, 34, 33, 35]
    np.testing.assert_array_equal(whc8_order(9, 2, 2), flat)
    np.testing.assert_array_equal(whc8_to_nchw(nchw_to_whc8(maps), 9, 2, 2), maps)


def test_kernels_above_seven_are_refused() -> None:
    with pytest.raises(EncodingError, match="8 x 1"):
        pack_conv(np.zeros((1, 1, 1, 8), np.uint16), halves([0]))


def test_short_streams_are_refused() -> None:
    with pytest.raises(EncodingError, match="are needed"):
        unpack_conv(np.zeros(100, np.uint8), 3, 3, 3, 4, False)
