"""Commands of the driver at the limits of what it takes: the last value that is taken, and the first that is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bmcompiler.backends.dv.chip import DvChip
from bmcompiler.backends.dv.driver.checks import Refusal, structure
from bmcompiler.backends.dv.driver.checks_other import check_command, check_fc
from bmcompiler.backends.dv.driver.commands import Buf, ConvCommand, FcCommand, Pads, Pair, Run
from bmcompiler.backends.dv.driver.structs import IPU_V0, MAXIMIZER_V0, Pool
from bmcompiler.backends.dv.formats.packing_sizes import fc_size

BIG = 1 << 30
MOST = 4095
IMAGE = {"fmt_wr": 2, "rect_width": 9, "rect_height": 9, "stride_wr": 54}
TEXTURE = {"use_tex": 1, "tex_width": 9, "tex_height": 9, "fmt_tex": 1, "ridx": 2, "gidx": 1, "bidx": 0}
READ = {"use_rd": 1, "fmt_rd": 1, "stride_rd": 27}


def rule(refusal: Refusal | None) -> str:
    return refusal.rule if refusal else ""


def image(room: dict[str, int] | None = None, **fields: int) -> Refusal | None:
    """What is said of an image command with buffers of these sizes."""
    sizes = {"wr": BIG, "tex": BIG, "rd": BIG, **(room or {})}
    command = np.zeros(1, IPU_V0)
    command["header"] = (IPU_V0.itemsize, 3, 0, (0, 0))
    for handle, name in enumerate(sizes, 1):
        command[name]["mem"] = handle
    for name, value in fields.items():
        command[name] = value
    return check_command(command.tobytes(), DvChip(), lambda handle: list(sizes.values())[handle - 1])


@pytest.mark.parametrize(
    ("others", "name", "taken", "refused"),
    [
        (TEXTURE, "rect_width", (1, MOST - 1), (0, MOST)),
        (TEXTURE, "rect_height", (1, MOST - 1), (0, MOST)),
        (TEXTURE, "fmt_wr", (0, 1, 2), (3, 7, 255)),
        (TEXTURE, "tex_width", (1, MOST), (0, MOST + 1)),
        (TEXTURE, "tex_height", (1, MOST), (0, MOST + 1)),
        (TEXTURE, "stride_wr", (-32768, 0, 32767), (-32769, 32768)),
        (TEXTURE, "cnv_type", (0, 1), (2, 255)),
        (TEXTURE, "fmt_tex", (1,), (2, 3, 6, 8)),
        (READ, "fmt_rd", (0, 1), (2, 7, 255)),
        (READ, "stride_rd", (-32768, -1, 1, 32767), (-32769, 0, 32768)),
        (READ, "use_rd", (1,), (0,)),
    ],
)
def test_fields_of_images(others: dict[str, int], name: str, taken: tuple[int, ...], refused: tuple[int, ...]) -> None:
    for values, expected in ((taken, ""), (refused, "IPU_FIELD")):
        for value in values:
            assert rule(image(**{**IMAGE, **others, name: value})) == expected, value


@pytest.mark.parametrize("form", [0, 1, 7])
def test_a_swizzle_names_each_channel_of_the_texture_once(form: int) -> None:
    """Of RGB three: the fourth index is not looked at."""
    four, three = {"ridx": 3, "gidx": 2, "bidx": 0, "aidx": 1}, {"ridx": 2, "gidx": 0, "bidx": 1, "aidx": 9}
    for given, good in (
        (four, form != 1),
        (three, form == 1),
        (four | {"aidx": 2}, False),
        (four | {"aidx": 4}, False),
    ):
        fields = {**IMAGE, **TEXTURE, "fmt_tex": form, **given}
        assert rule(image(**fields)) == ("" if good else "IPU_FIELD")


@pytest.mark.parametrize(
    ("name", "need", "others", "fields"),
    [
        *(("wr", 81 * size, TEXTURE, {"fmt_wr": form}) for form, size in ((0, 4), (1, 3), (2, 6))),
        *(("rd", 81 * size, READ, {"fmt_rd": form}) for form, size in ((0, 4), (1, 3))),
        ("tex", 81 * 3, TEXTURE, {"fmt_tex": 1}),
        ("tex", 81 * 4, TEXTURE, {"fmt_tex": 0, "ridx": 3, "gidx": 2, "bidx": 0, "aidx": 1}),
        ("tex", 81, TEXTURE, {"fmt_tex": 7, "ridx": 3, "gidx": 2, "bidx": 0, "aidx": 1}),
    ],
)
def test_buffers_of_images_are_just_large_enough(
    name: str, need: int, others: dict[str, int], fields: dict[str, int]
) -> None:
    assert image({name: need}, **{**IMAGE, **others, **fields}) is None
    assert rule(image({name: need - 1}, **{**IMAGE, **others, **fields})) == "BUF_SPACE"


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (1, MOST), (MOST, 1), (17, 5)])
def test_sizes_of_products_and_their_buffers(inputs: int, outputs: int, quantized: bool) -> None:
    chip = DvChip(max_fc_vector_size=MOST)
    command = FcCommand(inputs, outputs, Buf(3), Buf(1), Buf(2), int(quantized))
    rooms = [2 * inputs, 2 * outputs, fc_size(inputs, outputs, quantized)]
    assert check_fc(command, chip, lambda handle: rooms[handle - 1]) is None
    for small in (1, 2, 3):
        assert rule(check_fc(command, chip, lambda handle: rooms[handle - 1] - (handle == small))) == "BUF_SPACE"  # noqa: B023
    for size in (0, MOST + 1):
        assert rule(check_fc(replace(command, input_size=size), chip, lambda _: BIG)) == "FC_IN_SIZE"
        assert rule(check_fc(replace(command, output_size=size), chip, lambda _: BIG)) == "FC_OUT_SIZE"


@pytest.mark.parametrize(
    ("size", "expected"),
    [((1, 1, 2), ""), ((1, 1, 1), "MAX_NCLASS"), ((0, 5, 2), "DIM0"), ((5, 0, 2), "DIM0"),
     ((4095, 4097, 2), ""), ((4096, 4096, 2), "MAX_NPIX")],
)  # fmt: skip
def test_sizes_of_maximizers_and_their_buffers(size: tuple[int, int, int], expected: str) -> None:
    command = np.zeros(1, MAXIMIZER_V0)
    command["header"] = (MAXIMIZER_V0.itemsize, 4, 0, (0, 0))
    command["input_buf"]["mem"], command["output_buf"]["mem"] = 1, 2
    for name, value in zip(("width", "height", "nclass"), size):
        command[name] = value
    pixels = size[0] * size[1]
    rooms = [2 * pixels * size[2], pixels]
    assert rule(check_command(command.tobytes(), DvChip(), lambda handle: rooms[handle - 1])) == expected
    for small in (1, 2) if not expected else ():
        found = check_command(command.tobytes(), DvChip(), lambda handle: rooms[handle - 1] - (handle == small))  # noqa: B023
        assert rule(found) == "BUF_SPACE"


CONV = Run(m=16, weight_buf=Buf(2), conv_enable=1, kernel=Pair(3, 3), conv_pad=Pads(1, 1, 1, 1))
COMMAND = ConvCommand(20, 18, 16, (CONV,), input_buf=Buf(1), output_buf=Buf(3))
NO_CONV = {"conv_enable": 0, "kernel": Pair(1, 1), "conv_pad": Pads()}


def rules_of(w: int, h: int, chip: DvChip | None = None, **fields: Any) -> set[str]:
    command = replace(COMMAND, w=w, h=h, runs=(replace(CONV, **fields),))
    return {refusal.rule for refusal in structure(command, chip or DvChip())}


@pytest.mark.parametrize(
    ("word", "fields"),
    [
        ("INPUT_TOO_SMALL", lambda pads: {"kernel": Pair(7, 7), "conv_pad": pads}),
        ("DIL_INPUT_TOO_SMALL", lambda pads: {"dilation": Pair(3, 3), "conv_pad": pads}),
        ("POOL_TOO_SMALL", lambda pads: {**NO_CONV, "pool_enable": Pool.AVERAGE, "pool_size": Pair(7, 7),
                                         "pool_stride": Pair(1, 1), "pool_pad": pads}),
    ],
)  # fmt: skip
def test_windows_of_seven_are_as_large_as_the_padded_map(word: str, fields: Any) -> None:
    pads = Pads(left=1, right=2, top=2, bottom=1)
    for w, h in ((4, 4), (3, 4), (4, 3), (3, 3)):
        assert (word in rules_of(w, h, **fields(pads))) == (min(w, h) == 3), (w, h)
    for pad in ("left", "right", "top", "bottom"):
        assert word in rules_of(4, 4, **fields(pads._replace(**{pad: getattr(pads, pad) - 1}))), pad


def test_pads_of_dilated_kernels_are_as_wide_as_the_map() -> None:
    old = DvChip(svn_version=83)
    for pad in ("left", "right", "top", "bottom"):
        for wide, refused in ((9, False), (10, True)):
            pads = Pads()._replace(**{pad: wide})
            found = rules_of(9, 9, old, kernel=Pair(1, 1), dilation=Pair(2, 2), conv_pad=pads)
            assert ("SVN_DIL_PAD" in found) == refused


@pytest.mark.parametrize(("size", "taken"), [((1, 2), False), ((2, 0), False), ((2, 1), True), ((3, 3), True),
                                             ((4, 3), False), ((3, 4), False)])  # fmt: skip
def test_windows_of_a_maximum(size: tuple[int, int], taken: bool) -> None:
    found = rules_of(20, 18, **NO_CONV, pool_enable=Pool.MAX, pool_size=Pair(*size), pool_stride=Pair(1, 1))
    assert ("MAXPOOL_SIZE" not in found) == taken
