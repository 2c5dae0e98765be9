"""Formats and factors of quantization at their limits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from lane_nets import Net

from bmcompiler.backends.bm1684.packed.channel_end import takes_factors
from bmcompiler.ir import Value
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.passes.quantization.scale.formats import Format
from bmcompiler.passes.quantization.scale.scheme import Scales


def test_a_zero_point_leaves_less_above() -> None:
    assert Format("u8", 0.5, 10).top == 0.5 * 245
    assert Format("i8", 0.5, -10).top == 0.5 * 137


def factors(net: Net, kind: str) -> Value:
    """Shifts of three channels, or something that is almost such."""
    if kind == "computed":
        return net.b.cast(net.inputs[0], dtype="i16")
    return net.b.weight(np.ones(3, np.int16 if kind == "shifts" else np.int32), "shifts")


@pytest.mark.parametrize(
    ("mode", "kind", "dtype", "taken"),
    [
        (CHANNEL, "shifts", "i8", True),
        (CHANNEL, "shifts", "u8", True),
        (CHANNEL, "shifts", "i16", False),
        (CHANNEL, "wide", "i8", False),
        (CHANNEL, "computed", "i8", False),
        (CHANNEL, None, "i8", False),
        ("shift", None, "i8", True),
        ("shift", "wide", "i8", True),
    ],
)
def test_each_part_of_the_rule_of_channel_factors_counts(mode: str, kind: str | None, dtype: str, taken: bool) -> None:
    net = Net([(3,)], 0, "f32")
    op: Any = SimpleNamespace(mode=mode, type=SimpleNamespace(dtype=dtype))
    assert takes_factors(op, None if kind is None else factors(net, kind)) is taken


def test_what_has_lost_16_bits_does_not_get_them_again() -> None:
    """Two products in a row, of which each may be taken or refused in turn."""
    net = Net([(2, 4)])
    first = net.b.matmul(net.inputs[0], net.f32(4, 4))
    second = net.b.matmul(first, net.f32(4, 4))
    function = net.module([second]).main
    scheme, (one, two) = Scales(), (first.op, second.op)
    turns = [({one}, True, {first}), ({one}, False, {first}), ({one, two}, True, {second}), ({one}, True, set()),
             ({one, two}, False, set()), ({two}, False, set())]  # fmt: skip
    for accepted, changed, wide in turns:
        assert (scheme.widen(function, accepted), scheme.wide) == (changed, wide)
