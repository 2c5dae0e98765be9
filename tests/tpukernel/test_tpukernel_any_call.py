"""Any arguments at all: a call is refused with a sentence, or the chip runs what it issues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.errors import SimulatorError, UsageError
from bmcompiler.runtime.bm1684x_kernels import KernelDevice
from bmcompiler.tpukernel import FUNCTIONS, GLOBAL_MEM_START, LOCAL_MEM_SIZE, TABLE, program_of, recording

_GLOBAL_BYTES = 1 << 20
ISSUING = [row for row in TABLE.values() if "_bdc_" in row.name or ("_gdma_" in row.name and row.returns == "void")]


def integers(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)


def local(lane: int) -> st.SearchStrategy[int]:
    offsets = st.one_of(
        integers(0, 30).map(lambda i: i << 13), integers(0, 4095).map(lambda i: i * 64), integers(0, 999)
    )
    return offsets.map(lambda offset: lane * LOCAL_MEM_SIZE + offset)


def several(count: int, low: int, high: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[integers(low, high)] * count)


SHAPES = st.tuples(integers(1, 2), st.sampled_from((1, 3, 64, 70)), integers(1, 4), integers(1, 12))
FAR = integers(0, _GLOBAL_BYTES // 128).map(lambda i: GLOBAL_MEM_START + i * 64)
TYPES: dict[str, Callable[[], st.SearchStrategy[Any]]] = {
    "system_addr_t": lambda: FAR,
    "global_addr_t": lambda: FAR,
    "addr_t": lambda: st.one_of(FAR, local(0)),
    "static_addr_t": lambda: st.one_of(integers(0, 700).map(lambda i: 4 * i), integers(0, (1 << 14) - 1)),
    "dim2": lambda: several(2, 1, 3),
    "padding_t": lambda: several(4, 0, 2),
    "data_type_t": lambda: st.sampled_from((0, 1, 3, 5, 5, 5, 6, 7, 8, 9, 11, 12)),
    "rounding_mode_t": lambda: integers(0, 6),
    "scalar_t": lambda: integers(0, (1 << 32) - 1),
    "float": lambda: st.floats(width=32),
    "bool": st.booleans,
    "char": lambda: integers(-128, 127),
    "int": lambda: st.sampled_from((0, 1, 2, 5, 10, 64, 100)),
    "unsigned int": lambda: st.sampled_from((0, 1, 10, 100)),
    "unsigned char": lambda: integers(0, 40),
    "variable_t": lambda: st.tuples(integers(0, 2), local(0)),
}


@st.composite
def arguments(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """For most parameters what they could be; tensors mostly in one lane."""
    lane = draw(st.sampled_from((0, 0, 7)))
    shape = draw(SHAPES)
    found = {}
    for each in TABLE[name].parameters:
        series = each.name.removesuffix("_addr").endswith(("coeff", "table"))
        if each.base == "local_addr_t":
            found[each.name] = draw(local(0 if series else lane))
        elif each.optional:
            found[each.name] = draw(st.one_of(st.none(), st.none(), several(4, 0, 40)))
        elif each.base == "dim4":
            found[each.name] = shape
        else:
            found[each.name] = draw(TYPES[each.base]())
    return found


@pytest.fixture(scope="module")
def device() -> KernelDevice:
    return KernelDevice(_GLOBAL_BYTES)


@settings(max_examples=250, deadline=None)
@given(data=st.data())
def test_any_call_is_refused_or_runs(device: KernelDevice, data: st.DataObject) -> None:
    check_any_call(device, data)


@pytest.mark.sweep
@settings(max_examples=8000, deadline=None)
@given(data=st.data())
def test_any_call_is_refused_or_runs_many(device: KernelDevice, data: st.DataObject) -> None:
    check_any_call(device, data)


def check_any_call(device: KernelDevice, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([row.name for row in ISSUING]))
    given_arguments = data.draw(arguments(name))
    try:
        with recording() as recorder:
            FUNCTIONS[name](**given_arguments)
    except UsageError as error:
        assert str(error).startswith(name)
        return
    try:
        device.launch(program_of(recorder))
    except SimulatorError as error:
        words = ("index", "outside the memory of the program", "a shift must be")
        assert any(one in str(error) for one in words)
