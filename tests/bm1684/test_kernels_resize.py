"""Linear and cubic resizing on the BM1684."""

from __future__ import annotations

import pytest
from bm1684_nets import FULL, Net, check, check_op
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.ir import Value
from bmcompiler.ops.places.resample import COORDINATES
from bmcompiler.target import unsupported_reason

property_test = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
SIDE = st.tuples(st.integers(1, 9), st.integers(1, 20))


@property_test
@given(
    st.sampled_from([(), (3,), (2, 5), (1, 70), (2, 130), (2, 3, 2)]),
    SIDE,
    SIDE,
    st.sampled_from(["linear", "cubic"]),
    st.sampled_from(sorted(set(COORDINATES) - {"tf_crop_and_resize"})),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1024, 4096, FULL]),
    st.integers(0, 99),
)
def test_interpolation(
    lead: tuple[int, ...],
    rows: tuple[int, int],
    columns: tuple[int, int],
    mode: str,
    coordinates: str,
    exclude: bool,
    antialias: bool,
    lanes: int,
    seed: int,
) -> None:
    shape, sizes = (*lead, rows[0], columns[0]), (*lead, rows[1], columns[1])
    scales = tuple(want / have for have, want in zip(shape, sizes))

    def make(net: Net, x: Value) -> Value:
        options = {"coordinates": coordinates, "exclude_outside": exclude, "antialias": antialias}
        value: Value = net.b.resize(x, sizes=sizes, scales=scales, mode=mode, **options)
        return value

    check_op(make, shape, seed=seed, lanes=lanes, close=1e-4)


def test_one_axis_alone() -> None:
    for shape, sizes in (((7,), (12,)), ((2, 3, 9, 4), (2, 3, 5, 4))):
        scales = tuple(want / have for have, want in zip(shape, sizes))
        check_op(lambda net, x, a=sizes, b=scales: net.b.resize(x, sizes=a, scales=b, mode="linear"), shape)


def test_doubling_takes_few_instructions() -> None:
    net = Net([(1, 64, 32, 32)])
    resized = net.b.resize(net.inputs[0], sizes=(1, 64, 64, 64), scales=(1.0, 1.0, 2.0, 2.0), mode="linear")
    (row,) = check(net.module([resized])).rows
    assert row.commands <= 40


@pytest.mark.parametrize(
    ("options", "shape", "reason"),
    [
        ({"coordinates": "tf_crop_and_resize"}, (1, 2, 8, 8), "Cropping is only done to the nearest elements"),
        ({}, (2, 4, 4, 4), "Only the last two axes may be interpolated"),
    ],
)
def test_what_stays_on_the_cpu_says_why(options: dict[str, str], shape: tuple[int, ...], reason: str) -> None:
    net = Net([(1, 2, 4, 4)])
    scales = tuple(want / have for have, want in zip((1, 2, 4, 4), shape))
    resized = net.b.resize(net.inputs[0], sizes=shape, scales=scales, mode="linear", **options)
    found = unsupported_reason(TARGET, resized.op)
    assert found is not None and found.startswith(reason)
