"""Random modules for hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from bmcompiler.ir import DTYPES, Block, Function, Module, Operation, Quant, TensorType, Value

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.text(st.sampled_from('"\\\n\t\0\x7f %{}<>é层\U0001f600\udc80//'), max_size=8),
)
NAMES = st.one_of(st.from_regex(r"[a-z_][a-z0-9_.$]{0,6}", fullmatch=True), TEXTS)
FLOATS = st.one_of(
    st.floats(),
    st.sampled_from([0.0, -0.0, 5e-324, -2.2e-308, 1e16, 1e22, 1.7976931348623157e308, 0.1, 1e-5, 123456789.0]),
)
SCALES = st.floats(allow_nan=False, allow_infinity=False)
ZERO_POINTS = st.integers(-1000, 1000)


@st.composite
def types(draw: Any) -> TensorType:
    """Any element type, with or without a quantization of the tensor or along one of its axes."""
    shape = tuple(draw(st.lists(st.integers(0, 65536), max_size=3)))
    axes = [axis for axis, size in enumerate(shape) if 1 <= size <= 16]
    quants = st.none() | st.builds(Quant, SCALES, ZERO_POINTS)
    if axes:
        axis = draw(st.sampled_from(axes))
        each = st.lists(SCALES, min_size=shape[axis], max_size=shape[axis])
        quants |= st.builds(Quant.along, st.just(axis), each, ZERO_POINTS)
    return TensorType(shape, draw(st.sampled_from(sorted(DTYPES))), draw(quants))


TYPES = types()
ATTRIBUTES = st.recursive(
    st.one_of(st.booleans(), st.integers(-(10**38), 10**38), FLOATS, TEXTS, TYPES),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=5,
)
DICTIONARIES = st.dictionaries(NAMES, ATTRIBUTES, max_size=2)
LOCATIONS = st.lists(TEXTS, max_size=3).map(tuple)


@st.composite
def blocks(draw: Any, visible: list[Value], depth: int) -> Block:
    block = Block(draw(st.lists(TYPES, max_size=2)))
    values = [*visible, *block.arguments]
    for _ in range(draw(st.integers(0, 3))):
        operands = draw(st.lists(st.sampled_from(values), max_size=3)) if values else []
        regions = [draw(blocks(values, depth - 1)) for _ in range(draw(st.integers(0, 1)))] if depth else []
        op = Operation(
            draw(st.sampled_from(["my.op", "x", 'odd "name"', "é.\\"])),
            operands,
            draw(st.lists(TYPES, max_size=2)),
            draw(DICTIONARIES),
            regions,
            draw(LOCATIONS),
        )
        values += block.append(op).results
    return block


@st.composite
def modules(draw: Any) -> Module:
    """Well-formed modules of unregistered ops with odd names, attributes and nested regions."""
    module = Module(attributes=draw(DICTIONARIES))
    for index in range(draw(st.integers(0, 2))):
        function = Function(f"{draw(TEXTS)}{index}", attributes=draw(DICTIONARIES))
        function.body = draw(blocks([], 2))
        function.body.owner = function
        function.input_names = [f"{draw(TEXTS)}{i}" for i in range(len(function.arguments))]
        values = [*function.arguments, *(value for op in function.ops for value in op.results)]
        returned = draw(st.lists(st.sampled_from(values), max_size=3)) if values else []
        function.set_outputs(returned, [f"{draw(TEXTS)}{i}" for i in range(len(returned))])
        module.functions = (*module.functions, function)
    return module
