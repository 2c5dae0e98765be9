"""The table of operators: all of the vendor's, with its parameters, and the element types that the vendor allows."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
from bmlang_samples import arguments, call, combinations, variants
from expected_types import allowed

from bmcompiler import bmlang
from bmcompiler.bmlang import BOTH, COMPUTE_CPU, FLOAT32, INT8, TABLE, Locality, Tensor
from bmcompiler.errors import BMError, UsageError
from bmcompiler.frontends.bmlang.rows import CHIPS

HEADINGS = (Path(__file__).parent.parent / "data" / "bmlang" / "operators.txt").read_text().split()
TODO = {"tile_v2", "space_to_batch_v2", "batch_to_space_v2", "nms_v2"}


def test_all_headings_of_the_page_are_operators() -> None:
    assert len(HEADINGS) == 108
    assert list(TABLE) == HEADINGS
    assert all(callable(getattr(bmlang, name)) for name in HEADINGS)
    assert {row.name for row in TABLE.values() if row.todo} == TODO


def test_classes_are_those_of_the_page() -> None:
    found = {kind: {row.name for row in TABLE.values() if row.locality == kind} for kind in Locality}
    assert found[Locality.LIMITED] == {"cast", "tile", "broadcast", "extract", "concat", "pad", "reduce", "arg"}
    assert len(found[Locality.GLOBAL]) == 29
    assert len(found[Locality.LOCAL]) == 71


@pytest.mark.parametrize("name", HEADINGS)
def test_parameters_are_the_vendors_with_the_outputs_last(name: str) -> None:
    row = TABLE[name]
    shown = inspect.signature(getattr(bmlang, name)).parameters
    assert set(shown) == {parameter.name for parameter in row.parameters}
    assert [parameter.name for parameter in row.outputs] == list(shown)[-len(row.outputs) :]


@pytest.mark.parametrize("name", [name for name in HEADINGS if name != "constdata"])
def test_both_call_styles_give_the_same(name: str) -> None:
    """Outputs in the vendor's place, at the end, by name, or left out."""
    row = TABLE[name]
    with bmlang.init(COMPUTE_CPU, "BM1684"):
        variant = variants(row)[0]
        ins, outs = next((i, o) for i, o in combinations(row) if allowed(name, "BM1684", variant, i, o))
        given = arguments(row, ins, outs, variant, np.random.default_rng(1))
        want = [tensor.get_data() for tensor in call(name, given, outs)]

        def made() -> dict[str, object]:
            tensors = [Tensor(dtype=dtype) for dtype in outs]
            many = row.outputs[0].kind == "Os"
            return {row.outputs[0].name: tensors} if many else dict(zip([p.name for p in row.outputs], tensors))

        for order in (row.parameters, row.last):
            places = {**given, **made()}
            check(want, getattr(bmlang, name)(*(places[parameter.name] for parameter in order)))
        left_out = {} if len(outs) > 1 else {"dtype": outs[0]}
        check(want, getattr(bmlang, name)(**given, **left_out))


def check(want: list[object], got: object) -> None:
    tensors = got if isinstance(got, tuple) else (got,)
    for tensor, array in zip(tensors, want, strict=True):
        np.testing.assert_array_equal(tensor.get_data(), array)  # type: ignore[attr-defined]


@pytest.mark.parametrize("chip", [pytest.param("BM1682", marks=pytest.mark.sweep), "BM1684"])
@pytest.mark.parametrize("name", [name for name in HEADINGS if name != "constdata"])
def test_element_types_are_taken_exactly_where_the_page_says(name: str, chip: str) -> None:
    """Every choice of types of inputs and outputs: computed, or refused with one sentence that names the operator."""
    row, rng = TABLE[name], np.random.default_rng(0)
    taken = 0
    with bmlang.init(COMPUTE_CPU, chip):
        for variant in variants(row):
            made: dict[object, object] = {}
            for ins, outs in combinations(row):
                right = allowed(name, chip, variant, ins, outs)
                if right or ins not in made:
                    made[ins] = arguments(row, ins, outs, variant, rng)
                try:
                    found = call(name, made[ins], outs)  # type: ignore[arg-type]
                except BMError as error:
                    assert not right, (variant, ins, outs, str(error))
                    assert str(error).startswith(name)
                    assert chip in str(error)
                    assert "\n" not in str(error)
                else:
                    assert right, (variant, ins, outs)
                    assert [tensor.dtype for tensor in found] == list(outs)
                    assert [tensor.get_data().dtype.name for tensor in found] == [d.name.lower() for d in outs]
                    taken += 1
    assert taken or not row.typing(chip)


@pytest.mark.parametrize("chip", CHIPS)
def test_constdata_takes_the_types_of_the_page(chip: str) -> None:
    with bmlang.init(COMPUTE_CPU, chip):
        for dtype in (FLOAT32, INT8):
            tensor = Tensor(dtype=dtype, data=[1, 2])
            if allowed("constdata", chip, "", (), (dtype,)):
                assert bmlang.constdata(tensor).constant
            else:
                with pytest.raises(UsageError, match="constdata on BM1682: tensor is INT8; allowed"):
                    bmlang.constdata(tensor)


def test_a_refusal_names_operator_chip_argument_and_what_is_allowed() -> None:
    with bmlang.init(BOTH, "BM1684"):
        x, y = Tensor(data=np.zeros((2, 2), np.int16)), Tensor(data=np.zeros((2, 2), np.int16))
        with pytest.raises(UsageError) as error:
            bmlang.mul(x, y, Tensor(dtype=INT8))
        assert str(error.value) == (
            "mul on BM1684: tensor_i0 must not be INT16; allowed: FLOAT32 FLOAT32 -> FLOAT32; INT32 INT32 -> INT32; "
            "INT8|UINT8 INT8|UINT8 -> INT8|UINT8|INT16|UINT16"
        )
        with pytest.raises(UsageError, match="a UINT16 result takes no INT16 input: got tensor_i0 INT16"):
            bmlang.add(x, y, dtype=np.uint16)
    with bmlang.init(COMPUTE_CPU, "BM1682"), pytest.raises(UsageError, match="lut does not exist on BM1682"):
        bmlang.lut(Tensor(data=np.zeros(3, np.int8)), Tensor(data=np.zeros(256, np.int8)))


def test_an_unsigned_matrix_product_of_signed_inputs_can_be_allowed() -> None:
    left, right = Tensor(data=np.full((1, 1), -2, np.int8)), Tensor(data=np.full((1, 1), -3, np.int8))
    with (
        bmlang.init(COMPUTE_CPU, "BM1684"),
        pytest.raises(UsageError, match="an unsigned result takes unsigned inputs"),
    ):
        bmlang.matrix_mul([left, right], dtype=np.uint8)
    with bmlang.init(COMPUTE_CPU, "BM1684", relaxed=True):
        assert bmlang.matrix_mul([left, right], dtype=np.uint8).get_data() == 6
