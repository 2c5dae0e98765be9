"""Tiles of a convolution's channels read the same input: it is loaded once, of a grouped one by each tile its own."""

from __future__ import annotations

import pytest
from lane_nets import Net

from bmcompiler.analysis.profile import analysis_of
from bmcompiler.target import find_target

CHANNELS, OUTPUTS, SIZE = 128, 512, 6
CASES = [
    (chip, kind, group, lane_bytes)
    for chip, kind, few, many in (("bm1684", "i8", 2048, 8192), ("bm1684", "f32", 8192, 8192),
                                  ("bm1684x", "f32", 8192, 8192), ("bm1880", "i8", 2048, 8192))
    for group, lane_bytes in ((1, few), (2, many), (4, many))
]  # fmt: skip


@pytest.mark.parametrize(("chip", "kind", "group", "lane_bytes"), CASES)
def test_the_input_is_loaded_once(
    chip: str, kind: str, group: int, lane_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, net = find_target(chip), Net([(1, CHANNELS, SIZE, SIZE)], 0, kind)
    monkeypatch.setattr(target.machine.tiler, "lane_bytes", lane_bytes)  # type: ignore[attr-defined]
    shape, given = (OUTPUTS, CHANNELS // group, 3, 3), {"rshift": 7} if kind == "i8" else {}
    weight = net.integers("i8", *shape) if kind == "i8" else net.f32(*shape)
    result = net.b.conv(net.inputs[0], weight, group=group, pads=(1, 1, 1, 1), **given)
    compiled = target.compile([net.module([result])], 1)
    (row,) = compiled.rows
    data = net.inputs[0].type.nbytes
    loaded = data if group == 1 else row.tiles * data // group
    assert row.tiles > 1
    assert (row.loaded, row.weights) == (loaded + weight.type.nbytes, weight.type.nbytes)
    costs = analysis_of(chip, compiled.model).costs  # type: ignore[union-attr]
    assert (costs.loaded.sum(), costs.weights.sum()) == (loaded, weight.type.nbytes)
