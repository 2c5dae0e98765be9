"""Bands of rows in the image slots of words: exact in local and in global memory, and whole nets of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import planned_cycles
import pytest
from bm1684_nets import BM1684, Net, check, local_memory, random_inputs
from fake_target import FakeTarget
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684.packed.bands import FromBandsKernel
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.backends.bm1684.timing_profile import TimingProfile
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Operation, TensorType, Value, verify_module
from bmcompiler.passes.layout.bands import FillImageSlots
from bmcompiler.passmanager import PassContext
from bmcompiler.runtime.simulator.bm1684.analysis import analyze
from bmcompiler.target import Kernel


@st.composite
def _cuts(draw: st.DrawFn) -> dict[str, int]:
    """Height, rows of bands, rows of neighbours and what fills the rest."""
    height = draw(st.integers(1, 23))
    rows = draw(st.integers(-(-height // 4), -(-height // 4) + 3))
    top, bottom = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    return {"height": height, "rows": rows, "top": top, "bottom": bottom, "fill": draw(st.integers(-128, 127))}


def _bands_of_bands(net: Net, x: Value, cut: dict[str, int], other: int) -> list[Value]:
    """An image through all three ops, and through bands of `other` rows."""
    b, (height, rows, top, bottom, fill) = net.b, cut.values()
    whole = b.to_bands(x, bands=4, rows=rows)
    framed = b.to_bands(x, bands=4, rows=rows, top=top, bottom=bottom, fill=fill)
    y = b.maxs(whole, value=-100)
    again = b.regroup_bands(y, height=height, rows=rows, top=top, bottom=bottom, fill=fill)
    more = b.regroup_bands(y, height=height, rows=other, bottom=1)
    moved = b.regroup_bands(y, height=height, rows=other)
    return [framed, b.maxs(again, value=-90), more, b.from_bands(moved, height=height), b.from_bands(y, height=height)]


@settings(max_examples=25, deadline=None)
@given(_cuts(), st.integers(0, 2), st.sampled_from([3, 64, 70]), st.booleans(), st.sampled_from([0, 1, 2]))
def test_rows_arrive_in_their_bands(cut: dict[str, int], more: int, channels: int, small: bool, level: int) -> None:
    net = Net([(1, channels, cut["height"], 5)], dtype="i8")
    values = _bands_of_bands(net, net.inputs[0], cut, -(-cut["height"] // 4) + more)
    with local_memory(1 << 12 if small else 1 << 19):
        check(net.module(values), level=level, device=True)


@settings(max_examples=10, deadline=None)
@given(_cuts(), st.integers(0, 2), st.sampled_from([3, 70]))
def test_rows_of_words_arrive_in_their_bands(cut: dict[str, int], more: int, channels: int) -> None:
    """Between ops that leave and read them in local memory."""
    net = Net([(1, channels, cut["height"], 5)])
    b, (height, rows, top, bottom, _) = net.b, cut.values()
    y = b.relu(b.to_bands(b.relu(net.inputs[0]), bands=4, rows=rows, top=0, bottom=0, fill=0))
    framed = b.relu(b.regroup_bands(y, height=height, rows=-(-height // 4) + more, top=top, bottom=bottom, fill=0))
    check(net.module([framed, b.relu(b.from_bands(y, height=height))]), level=2, device=True)


@pytest.mark.parametrize(("rows", "top", "bottom"), [(4, 6, 6), (4, 12, 0), (3, 2, 7), (5, 5, 6)])
def test_rows_of_bands_further_away_are_shifted(rows: int, top: int, bottom: int) -> None:
    net = Net([(4, 70, rows, 9)], dtype="i8")
    b, cut = net.b, {"height": 4 * rows - 3, "rows": rows, "top": top, "bottom": bottom, "fill": -128}
    made = b.maxs(b.regroup_bands(b.maxs(net.inputs[0], value=-100), **cut), value=-120)
    with planned_cycles.computations() as found:
        check(net.module([made]), level=2, device=True)
        planned_cycles.check(found)
    assert not any(one.transfers for one in found)


@pytest.mark.parametrize(
    ("rows", "other", "top", "fill"), [(7, 8, 1, 0), (8, 7, 0, 0), (7, 8, 2, -128), (14, 16, 3, 5)]
)
def test_other_rows_are_gathered_where_transfers_take_longer(rows: int, other: int, top: int, fill: int) -> None:
    net = Net([(4, 192, rows, 26)], dtype="i8")
    b, cut = net.b, {"height": 4 * min(rows, other) - 2, "rows": other, "top": top, "fill": fill}
    made = b.maxs(b.regroup_bands(b.maxs(net.inputs[0], value=-100), **cut), value=-120)
    with planned_cycles.computations() as found:
        check(net.module([made]), level=2, device=True)
        planned_cycles.check(found)
    assert not any(one.transfers for one in found)


class Forced(FakeTarget):
    """The chip, for which bands always pay."""

    name = TARGET.name

    def kernel_for(self, op: Operation) -> Kernel | None:
        return TARGET.kernel_for(op)

    def image_slots(self, dtype: str) -> int:
        return TARGET.image_slots(dtype)

    def local_cycles(self, op: Operation) -> int:
        return 0 if op.results[0].shape[0] == 4 or op.short_name == "from_bands" else 9


MODES: dict[str, dict[str, Any]] = {
    "shift": {"rshift": 7},
    "low": {"mode": "low", "scale": 0.0031},
    "high": {"mode": "high", "scale": 0.0011},
    "asymmetric": {"mode": "asymmetric", "scale": 0.0013, "zero_points": (3, -2, 5)},
}


def _conv(net: Net, x: Value, channels: int, kernel: int = 3, stride: int = 1, mode: str = "low", **more: Any) -> Value:
    _, c, h, w = x.shape
    out = TensorType((1, channels, -(-h // stride), -(-w // stride)), "i8")
    weight = net.integers("i8", channels, c // more.get("group", 1), kernel, kernel)
    pads = ((kernel - 1) // 2, kernel // 2) * 2
    return net.b.conv(x, weight, None, strides=(stride,) * 2, pads=pads, out=out, **MODES[mode], **more)


def _stem(net: Net, x: Value) -> list[Value]:
    """Rows of the windows of few channels are folded inside local memory."""
    y = _conv(net, x, 16, 7, 2)
    return [net.b.max_pool(y, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))]


def _residual(net: Net, x: Value) -> list[Value]:
    a = _conv(net, x, 70, 3)
    b = _conv(net, _conv(net, a, 20, 1), 70, 3)
    c = net.b.mac_shift(a, b, multipliers=(90, 40), rshift=7, out=a.type)
    return [net.b.concat(_conv(net, c, 64, 3, 2), _conv(net, c, 9, 1, 2), axis=1), c]


def _modes(net: Net, x: Value) -> list[Value]:
    values = [_conv(net, x, 6, 3, 1, mode) for mode in MODES]
    return [_conv(net, net.b.concat(*values, axis=1), 24, 3, 2, "asymmetric", group=24)]


def _decoder(net: Net, x: Value) -> list[Value]:
    b, c = net.b, x.shape[1]
    small = b.avg_pool(x, kernel=(2, 2), strides=(2, 2), multiplier=5, rshift=4)
    weight = net.integers("i8", c, 4, 3, 3)
    size = TensorType((1, 4, small.shape[2] * 2, small.shape[3] * 2), "i8")
    large = b.deconv(small, weight, strides=(2, 2), pads=(1, 1, 1, 1), output_pads=(1, 1), out=size, **MODES["low"])
    table = net.integers("i8", 256)
    return [b.lut(b.concat(large, b.upsample(small, scale=(2, 2)), axis=1), table), small]


def _gated(net: Net, x: Value) -> list[Value]:
    """A product with a number for each channel, which comes from the image."""
    a = _conv(net, x, x.shape[1])
    gate = net.b.avg_pool(a, kernel=a.shape[2:], scale=0.01)
    return [_conv(net, net.b.mul_shift(a, gate, rshift=4, out=a.type), 8, 5)]


@pytest.mark.parametrize("make", [_stem, _residual, _modes, _decoder, _gated])
@pytest.mark.parametrize(("height", "lanes"), [(28, 1 << 19), (19, 1 << 19), (10, 1 << 19), (22, 1 << 13)])
def test_nets_compute_the_same_on_bands(make: Callable[..., list[Value]], height: int, lanes: int) -> None:
    net = Net([(1, 3, height, 10)], height, "i8")
    module = net.module(make(net, net.inputs[0]))
    inputs = random_inputs(module)
    before = run_module(module, inputs, target=TARGET)
    assert FillImageSlots().run(module, PassContext(target=Forced())).modified
    verify_module(module)
    for name, array in run_module(module, inputs, target=TARGET).items():
        np.testing.assert_array_equal(array, before[name])
    with local_memory(lanes):
        compiled = check(module, level=2, device=lanes == 1 << 19, inputs=inputs)
    if lanes == 1 << 19 and make is not _modes:  # there, columns are padded with another number than 0
        assert all(row.stored == 0 for row in compiled.rows if row.kind in ("to_bands", "regroup_bands"))


@pytest.mark.parametrize("mode", ["shift", "low"])  # of the others each part has many commands, which take to start
@pytest.mark.parametrize("profile", TimingProfile.NAMED)
def test_some_rows_are_computed_while_others_are_folded(mode: str, profile: str) -> None:
    net = Net([(1, 3, 240, 256)], dtype="i8")
    module = net.module([net.b.relu(_conv(net, net.b.relu(net.inputs[0]), 32, 3, 2, mode))])
    assert FillImageSlots().run(module, PassContext(target=Forced())).modified
    chip = BM1684.planner(TimingProfile.NAMED[profile])
    with planned_cycles.computations() as found:
        chip.check(module, level=2)
    (folding,) = [one for one in found if one.stream is not None]
    planned_cycles.check([folding], chip.target.profile)
    assert len(folding.stream.loads) == len(folding.stream.steps) - 2 > 1  # type: ignore[union-attr]
    assert folding.planned < sum(folding.stream.steps) + sum(folding.stream.loads)  # type: ignore[union-attr]


def test_columns_that_no_window_reaches_lie_where_they_do() -> None:
    """They are folded with the whole, and parts would not know of them."""
    net = Net([(4, 3, 80, 224)], dtype="i8")
    out, weight = TensorType((4, 64, 39, 111), "i8"), net.integers("i8", 64, 3, 3, 3)
    made = net.b.conv(net.b.relu(net.inputs[0]), weight, None, strides=(2, 2), out=out, **MODES["low"])
    check(net.module([net.b.relu(made)]), level=2)


@pytest.mark.parametrize(("channels", "height", "shifted"), [(96, 80, True), (96, 71, True), (1, 80, False)])
def test_bands_of_many_channels_are_joined_by_shifts(channels: int, height: int, shifted: bool) -> None:
    net = Net([(4, channels, 20, 30)], dtype="i8")
    image = net.b.from_bands(net.b.relu(net.inputs[0]), height=height)
    pooled = net.b.max_pool(image, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
    with planned_cycles.computations() as found:
        check(net.module([net.b.lut(image, net.integers("i8", 256)), pooled]), level=2)
        planned_cycles.check(found)
    assert image.op is not None
    kernel = TARGET.kernel_for(image.op)
    assert isinstance(kernel, FromBandsKernel)
    work = kernel.whole(image.op)
    assert work is not None and (work.transfers == 0) == shifted


def test_bands_make_a_net_faster_and_move_less() -> None:
    net = Net([(1, 16, 56, 56)], dtype="i8")
    y = net.inputs[0]
    for _ in range(4):
        y = _conv(net, y, 64)
    module = net.module([y])
    plain = analyze(TARGET.compile([module], 2).model).timing()
    assert FillImageSlots().run(module, PassContext(target=TARGET)).modified
    banded = analyze(TARGET.compile([module], 2).model).timing()
    assert banded.cycles < 0.4 * plain.cycles
