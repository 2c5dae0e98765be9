"""Ops on bytes with operands and results in local memory: only inputs, outputs and weights cross the bus."""

from __future__ import annotations

from typing import Any

from bm1684_nets import Net, check
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmcompiler.ir import Value

BATCH = st.sampled_from([1, 2, 3, 4, 5, 8])
SHAPE = st.tuples(BATCH, st.integers(33, 70), st.integers(6, 9), st.integers(6, 9))
"""Channels and pixels enough for element-wise ops to see the map in its own shape."""
DTYPE = st.sampled_from(["i8", "u8"])
property_test = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


def spill(net: Net, *results: Value) -> int:
    """Bytes that cross the bus beside weights, inputs and outputs, after the check of bits and races."""
    module = net.module(results)
    rows = check(module).rows
    borders = sum(v.type.nbytes for v in (*module.main.arguments, *module.main.returned))
    return sum(row.loaded + row.stored - row.weights for row in rows) - borders


@property_test
@given(SHAPE, DTYPE, DTYPE)
def test_lookup(shape: Any, dtype: str, out: str) -> None:
    net = Net([shape], dtype=dtype)
    value = net.b.lut(net.b.relu(net.inputs[0]), net.integers(out, 256))
    assert spill(net, net.b.lut(net.b.relu(value), net.integers(dtype, 256))) == 0
