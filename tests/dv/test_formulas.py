"""Sizes, tiles and unified buffer need against the vendor's numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import trunc

import numpy as np
import pytest
from dv_data import golden

from bmcompiler.backends.dv.driver import structs
from bmcompiler.backends.dv.driver.commands import Buf, ConvCommand, FcCommand, Pads, Pair, Run
from bmcompiler.backends.dv.driver.geometry import Extent, chain, quotient, weight_bytes
from bmcompiler.backends.dv.driver.structs import Pool
from bmcompiler.backends.dv.driver.unified_buffer import chain_need, tile_conv, tile_lrn, tile_run
from bmcompiler.backends.dv.formats.packing_sizes import conv_size, dilated_size
from bmcompiler.errors import EncodingError

KIB = 1024


def test_structures_have_the_size_of_the_c_ones() -> None:
    sizes = {layout.itemsize for layout in structs.LAYOUTS.values()}
    assert sizes == {1864, 1896, 72, 224, 48}
    assert structs.CONV_RUN.itemsize == 56
    assert structs.INFO_V0.itemsize == 32


def test_divisions_are_those_of_c() -> None:
    for a, b in product(range(-30, 31), [*range(-7, 0), *range(1, 8)]):
        assert quotient(a, b) == trunc(Fraction(a, b))


@pytest.mark.parametrize(
    ("layout", "field", "offset"),
    [
        (structs.CONV_V0, "topo", 56),
        (structs.CONV_V0, "output_mode", 70),
        (structs.CONV_V0, "run", 72),
        (structs.CONV_V1, "to_bgr", 24),
        (structs.CONV_V1, "conv_cmd", 32),
        (structs.CONV_RUN, "conv_pad", 16),
        (structs.CONV_RUN, "pool_enable", 38),
        (structs.CONV_RUN, "lrn", 52),
        (structs.FC_V0, "actfunc_param", 64),
        (structs.IPU_V0, "lut", 76),
        (structs.IPU_V0, "cnv_param", 216),
        (structs.MAXIMIZER_V0, "nclass", 44),
        (structs.INFO_V0, "max_fc_vector_size", 24),
    ],
)
def test_fields_lie_where_c_puts_them(layout: np.dtype, field: str, offset: int) -> None:
    assert layout.fields and layout.fields[field][1] == offset


def test_numpy_layouts_have_a_ctypes_form() -> None:
    import ctypes

    assert ctypes.sizeof(np.ctypeslib.as_ctypes_type(structs.CONV_V0)) == 1864


def test_tiles_of_convolutions() -> None:
    data = golden()
    for given, expected in zip(data["tiles_conv_in"].tolist(), data["tiles_conv_out"].tolist()):
        w, h, c, m, kx, ky, left, right, top, bottom, sx, sy, dx, dy, kib, deconv = given
        found = tile_conv(
            Extent(w, h, 1, c),
            m,
            Pair(kx, ky),
            Pads(left, right, top, bottom),
            Pair(sx, sy),
            Pair(dx, dy),
            kib * KIB,
            deconv=bool(deconv),
        )
        assert list(found) == expected, given


def test_tiles_of_lrn() -> None:
    data = golden()
    for (w, h, c, kib), expected in zip(data["tiles_lrn_in"].tolist(), data["tiles_lrn_out"].tolist()):
        assert list(tile_lrn(Extent(w, h, 1, c), kib * KIB)) == expected


@pytest.mark.parametrize(
    ("w", "c", "m", "k", "stride", "kib", "tiles"),
    [
        (56, 64, 64, 3, 1, 640, 1),
        (112, 64, 128, 1, 1, 640, 3),
        (28, 512, 512, 3, 1, 640, 2),
        (416, 16, 32, 3, 1, 1024, 9),
    ],
)
def test_tiles_of_documented_examples(w: int, c: int, m: int, k: int, stride: int, kib: int, tiles: int) -> None:
    pad, step = k // 2, Pair(stride, stride)
    found = tile_conv(Extent(w, w, 1, c), m, Pair(k, k), Pads(pad, pad, pad, pad), step, Pair(1, 1), kib * KIB)
    assert found.tiles == tiles


def test_sizes_of_packed_weights() -> None:
    data = golden()
    for (c, m, side, quant, depthwise, prelu), size in zip(data["wsize_in"].tolist(), data["wsize_out"].tolist()):
        assert conv_size(1 if depthwise else c, side, side, m, bool(quant), bool(prelu)) == size
    for (c, m, kx, ky, quant), size in zip(data["wsize_dil_in"].tolist(), data["wsize_dil_out"].tolist()):
        assert dilated_size(c, kx, ky, m, bool(quant)) == size


def test_multi_run_commands() -> None:
    data = golden()
    for raw, runs, (_, need) in zip(data["chain_cmd"], data["chain_runs"].tolist(), data["chain_ub"].tolist()):
        command = ConvCommand.decode(raw.tobytes())
        found = [[*link.out, link.out.bytes, weight_bytes(link.run, link.source.c)] for link in chain(command)]
        assert found == [run for run in runs if run[0] >= 0]
        assert chain_need(command) == need
        assert ConvCommand.decode(command.encode()) == command


def test_topology_of_four_branches() -> None:
    """dv.md 1.6: topo 0x55 is run 0 alone and three pairs, all of the common input."""
    runs = tuple(Run(m=8, pool_enable=2, pool_size=Pair(1, 1)) for _ in range(7))
    command = ConvCommand(4, 4, 8, runs, topo=0x55)
    assert [command.reads_command_input(i) for i in range(7)] == [True, True, False, True, False, True, False]
    assert [command.writes_external(i) for i in range(7)] == [True, False, True, False, True, False, True]


def test_version_1_and_fc_commands_survive_bytes() -> None:
    conv = ConvCommand(9, 7, 3, (Run(m=4, conv_enable=1, kernel=Pair(3, 5)),), u8_table=Buf(4, 32), to_bgr=1)
    assert len(conv.encode()) == 1896
    assert ConvCommand.decode(conv.encode()) == conv
    fc = FcCommand(100, 10, Buf(1, 16), Buf(2), Buf(3), weight_fmt=1, actfunc=3, actfunc_param=0x2E66)
    assert FcCommand.decode(fc.encode()) == fc


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (Run(m=1, conv_pad=Pads(128, 0, 0, 0)), "conv_pad"),
        (Run(m=1, pool_pad=Pads(0, 256, 0, 0)), "pool_pad"),
        (Run(m=1, conv_stride=Pair(256, 1)), "conv_stride"),
        (Run(m=1 << 16), "m 65536"),
    ],
)
def test_values_that_do_not_fit_name_their_field(run: Run, words: str) -> None:
    with pytest.raises(EncodingError, match=words):
        ConvCommand(4, 4, 4, (run,)).encode()


@pytest.mark.parametrize(
    ("w", "h", "c", "tiles"),
    [(8192, 8192, 1, 1), (8065, 8321, 1, 2), (16384, 8192, 1, 2), (16384, 8193, 1, 3),
     (1024, 8192, 64, 1), (1024, 8193, 64, 2), (1, 65535, 8, 1), (65535, 65535, 8, 512)],
)  # fmt: skip
def test_pooling_is_cut_where_a_slice_has_too_many_elements(w: int, h: int, c: int, tiles: int) -> None:
    run = Run(m=c, pool_enable=Pool.AVERAGE, pool_size=Pair(2, 2), pool_stride=Pair(2, 2))
    assert tile_run(Extent(w, h, 1, c), run, 512 * KIB).tiles == tiles
