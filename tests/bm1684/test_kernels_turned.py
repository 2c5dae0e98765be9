"""lrn between ops in local memory: its operand and its result keep a channel per lane, and never cross the bus."""

from __future__ import annotations

from bm1684_nets import FULL, Net, check, check_op, local_memory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmcompiler.ir import Value

property_test = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


def between(net: Net, x: Value, size: int) -> Value:
    return net.b.relu(net.b.lrn(net.b.relu(x), size=size, alpha=0.5, beta=0.75, k=2.0))


@property_test
@given(
    st.sampled_from([1, 1, 2, 3]),
    st.sampled_from([1, 5, 64, 100]),
    st.integers(1, 12),
    st.integers(1, 12),
    st.sampled_from([1, 3, 5]),
    st.sampled_from([FULL, 8192]),
    st.integers(0, 99),
)
def test_lrn_of_what_is_in_local_memory(n: int, c: int, h: int, w: int, size: int, lanes: int, seed: int) -> None:
    check_op(lambda net, x: between(net, x, size), (n, c, h, w), seed=seed, lanes=lanes)


def test_only_the_ends_of_the_net_are_moved() -> None:
    net = Net([(1, 96, 28, 28)])
    module = net.module([between(net, net.inputs[0], 5)])
    rows = {row.kind: row for row in check(module).rows}
    assert (rows["lrn"].loaded, rows["lrn"].stored) == (0, 0)


def test_maps_that_have_no_room_beside_the_registers_are_tiled() -> None:
    with local_memory(8192):
        net = Net([(1, 96, 28, 28)])
        check(net.module([between(net, net.inputs[0], 5)]), device=False)
