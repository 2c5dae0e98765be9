"""What ops say of themselves to passes is true, numerically, for the sample of every registered op."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import permutations
from typing import Any, cast

import numpy as np
import pytest
from op_samples import SAMPLES, build, random_array

from bmcompiler.interpreter import evaluate_op
from bmcompiler.ir import Block, TensorType, Value, type_of_array
from bmcompiler.ops import find_op, load_all
from bmcompiler.ops.base import Axes, Axis, PerAxis, PerAxisPairs, TensorOp
from bmcompiler.ops.elements.elementwise import Binary
from bmcompiler.ops.places.index import INDEX
from bmcompiler.passes.simplify.axes import AxisMap, inverse, moved_attributes

OPS = sorted(name for name in SAMPLES if name != "weight")
Arrays = list[np.ndarray]


@cache
def sample(name: str) -> TensorOp:
    module = build(name)
    (op,) = [op for op in module.main.ops[:-1] if op.short_name == name]
    return cast(TensorOp, op)


RECURRENT = ("rnn", "gru", "lstm", "recurrence")
PACKED = ("weight_only_matmul",)
"""Whose weights are no floats: tests/ops/test_weight_only.py counts their products."""
"""They add in steps, with functions between them."""


def claiming(claims: Callable[[TensorOp], Any]) -> list[str]:
    return [name for name in OPS if claims(sample(name))]


def constants(name: str) -> dict[int, np.ndarray]:
    """Constant operands of the sample, such as indices."""
    module = build(name)
    (op,) = [op for op in module.main.ops[:-1] if op.short_name == name]
    found = {}
    for index, value in enumerate(op.operands):
        if value.op is not None and value.op.short_name == "weight":
            found[index] = module.weights[value.op.attributes["key"]]
    return found


def draw(name: str, seed: int = 0, *, signed: bool = False) -> Arrays:
    """Operands for the sample of an op; floats are positive unless `signed`."""
    rng, fixed = np.random.default_rng(seed), constants(name)
    arrays = [fixed.get(i, random_array(rng, v.type)) for i, v in enumerate(sample(name).operands)]
    return [rng.normal(0, 3, a.shape).astype(a.dtype) if signed and a.dtype.kind == "f" else a for a in arrays]


def values(arrays: Arrays, like: TensorOp) -> list[Value]:
    """Operands outside any function, quantized as those of `like`."""
    quants = [v.type.quant for v in like.operands]
    types = [type_of_array(a) for a in arrays]
    return [Value(TensorType(t.shape, t.dtype, q), Block(), 0) for t, q in zip(types, quants)]


def run(op: TensorOp, arrays: Arrays, **changes: Any) -> Arrays:
    """Results of `op` on other arrays."""
    return evaluate_op(op.clone(values(arrays, op), **changes), arrays)


def equal(found: Arrays, wanted: Arrays) -> None:
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", claiming(lambda op: op.pointwise))
def test_pointwise_ops_do_not_look_at_the_shape(name: str) -> None:
    op, (x, *tables) = sample(name), draw(name)
    equal(run(op, [x.reshape(-1), *tables]), [y.reshape(-1) for y in run(op, [x, *tables])])


@pytest.mark.parametrize("name", claiming(lambda op: op.broadcasts))
def test_broadcasting_ops_give_each_element_from_those_at_its_place(name: str) -> None:
    op, arrays = sample(name), draw(name)
    (y,) = run(op, arrays)
    spread = [np.ascontiguousarray(a) for a in np.broadcast_arrays(*arrays)]
    assert y.shape == spread[0].shape
    equal(run(op, [a.reshape(-1) for a in spread]), [y.reshape(-1)])


@pytest.mark.parametrize("name", claiming(lambda op: op.commutes_with_permutes()))
def test_permutes_move_through_ops_that_commute_with_them(name: str) -> None:
    op, arrays = sample(name), draw(name)
    results = run(op, arrays)
    rank = max(a.ndim for a in arrays)
    for order in list(permutations(range(rank)))[1::3]:
        axes = AxisMap(op, order)
        before = []
        for i, a in enumerate(arrays):
            if axes.follows(i):
                a = a.reshape((1,) * (rank - a.ndim) + a.shape).transpose(inverse(order))
            before.append(np.ascontiguousarray(a))
        found = run(op, before, **moved_attributes(axes))
        equal([y.transpose(axes.result_order()) for y in found], results)


@pytest.mark.parametrize("name", claiming(lambda op: op.moves_only))
def test_moving_ops_take_elements_from_places_that_values_do_not_decide(name: str) -> None:
    op, arrays = sample(name), draw(name)
    numbers = np.split(np.arange(sum(a.size for a in arrays)), np.cumsum([a.size for a in arrays])[:-1])
    floats = op.clone([Value(TensorType(a.shape, "i32"), Block(), 0) for a in arrays])
    places = evaluate_op(floats, [n.astype(np.int32).reshape(a.shape) for n, a in zip(numbers, arrays)])
    flat = np.concatenate([a.reshape(-1) for a in arrays])
    equal(run(op, arrays), [flat[place] for place in places])
    assert op.selects


@pytest.mark.parametrize("name", claiming(lambda op: op.selects))
def test_selecting_ops_give_elements_of_their_operands(name: str) -> None:
    arrays = draw(name, signed=True)
    for y in run(sample(name), arrays):
        assert np.isin(y, np.concatenate([a.reshape(-1) for a in arrays])).all()


@pytest.mark.parametrize("name", claiming(lambda op: op.index_operands))
def test_indices_mean_the_same_in_every_type_they_may_have(name: str) -> None:
    op, arrays = sample(name), draw(name)
    wanted = run(op, arrays)
    for dtype in INDEX:
        kind = np.dtype(dtype.replace("i", "int"))
        equal(run(op, [a.astype(kind) if i in op.index_operands else a for i, a in enumerate(arrays)]), wanted)


@pytest.mark.parametrize("name", claiming(lambda op: op.idempotent))
def test_idempotent_ops_change_nothing_the_second_time(name: str) -> None:
    once = run(sample(name), draw(name, signed=True))
    equal(run(sample(name), once), once)


@pytest.mark.parametrize("name", claiming(lambda op: op.bounds != (-math.inf, math.inf)))
def test_results_stay_within_the_bounds_of_the_op(name: str) -> None:
    (low, high), op = sample(name).bounds, sample(name)
    assert op.result_bounds() == op.bounds
    for scale in (1.0, 30.0):
        with np.errstate(all="ignore"):
            (y,) = run(op, [(scale * a).astype(a.dtype) for a in draw(name, signed=True)])
        assert np.all((y >= low) & (y <= high) | np.isnan(y))


def test_bounds_of_one_op_follow_from_its_attributes() -> None:
    assert sample("clip").result_bounds() == (-0.5, 6.0)
    x, y = (Value(TensorType((2, 3)), Block(), 0) for _ in range(2))
    for activation, bounds in (("relu", (0.0, math.inf)), ("relu6", (0.0, 6.0)), ("", (-math.inf, math.inf))):
        assert find_op("add")([x, y], {"activation": activation}).result_bounds() == bounds


@pytest.mark.parametrize("name", claiming(lambda op: op.keeps_sign()))
def test_ops_that_keep_signs_make_nothing_negative_of_what_is_not(name: str) -> None:
    arrays = [np.abs(a // 2 if a.dtype.kind == "i" else a) for a in draw(name, signed=True)]
    assert all((y >= 0).all() for y in run(sample(name), arrays))


@pytest.mark.parametrize("name", claiming(lambda op: op.keeps_range()))
def test_ops_that_keep_the_range_enlarge_nothing(name: str) -> None:
    x, *others = draw(name, signed=True)
    weights = [np.clip(a, -1, 1) for a in others] if sample(name).weight_operands else others
    data = [x] if sample(name).weight_operands else [x, *others]
    most = max(np.abs(a.astype(np.float64)).max() for a in data)
    assert all(np.abs(y.astype(np.float64)).max() <= most for y in run(sample(name), [x, *weights]))


@pytest.mark.parametrize("name", claiming(lambda op: isinstance(op, Binary) and op.neutral is not None))
def test_the_neutral_number_gives_back_the_first_operand(name: str) -> None:
    op = cast(Binary, sample(name))
    x = draw(name)[0]
    (y,) = run(op, [x, np.full_like(x, op.neutral)])
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("name", claiming(lambda op: isinstance(op, Binary) and op.commutative))
def test_operands_of_commutative_ops_may_change_places(name: str) -> None:
    op, (a, b) = sample(name), draw(name)
    equal(run(op, [b, a]), run(op, [a, b]))


@pytest.mark.parametrize("name", claiming(lambda op: op.affine))
def test_affine_ops_are_sums_of_products_with_a_bias(name: str) -> None:
    op, (x, *weights) = sample(name), draw(name)
    other, nothing = draw(name, 1)[0], np.zeros_like(x)
    (both,), (first,), (second,), (bias,) = (run(op, [d, *weights]) for d in (x + other, x, other, nothing))
    np.testing.assert_allclose(both + bias, first + second, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", claiming(lambda op: op.saturates))
def test_integer_forms_that_saturate_cut_exact_results_off(name: str) -> None:
    op, rng = sample(name), np.random.default_rng(2)
    attributes = dict(op.attributes) | ({"method": "sum"} if name == "reduce" else {})
    reals = [rng.integers(-128, 128, v.shape).astype(np.float64) for v in op.operands[:2]]
    (exact,) = evaluate_op(type(op)(values(reals, op), attributes), reals)
    exact = exact * op.kernel[0] * op.kernel[1] if name == "avg_pool" else exact  # whose integer form sums only
    result = TensorType(op.type.shape, "i8")
    whole = [a.astype(np.int8) for a in reals]
    (found,) = evaluate_op(type(op)(values(whole, op), attributes, [result]), whole)
    np.testing.assert_array_equal(found, np.clip(np.rint(exact), -128, 127))
    assert np.isin(found, (-128, 127)).mean() > 0.1


@pytest.mark.parametrize("name", claiming(lambda op: op.products() and op.opname not in (*RECURRENT, *PACKED)))
def test_multiply_accumulates_are_the_products_that_reach_the_results(name: str) -> None:
    """With ones as operands and no padding, the results add up to the number of products."""
    op = sample(name)
    ones = [np.ones(v.shape, np.float64) for v in op.operands[:2]]
    bare = type(op)(values(ones, op), {k: v for k, v in op.attributes.items() if k != "pads"})
    assert bare.products() == sum(y.sum() for y in evaluate_op(bare, ones)) and op.affine


IDENTITIES: dict[str, tuple[dict[str, Any], int]] = {
    "reshape": ({"shape": (2, 3, 4, 5)}, 4),
    "permute": ({"order": (0, 1, 2, 3)}, 4),
    "concat": ({"axis": 1}, 4),
    "split": ({"axis": 1, "sizes": (3,)}, 4),
    "slice": ({"starts": (0, 0), "ends": (2, 3), "steps": (1, 1)}, 2),
    "pad": ({"pads": (0, 0, 0, 0)}, 2),
    "tile": ({"reps": (1, 1)}, 2),
    "upsample": ({"scale": (1, 1)}, 4),
    "cast": ({"dtype": "f32"}, 4),
    "max_pool": ({"kernel": (1, 1)}, 4),
    "avg_pool": ({"kernel": (1, 1)}, 4),
    "clip": ({}, 4),
    "leaky_relu": ({"slope": 1.0}, 4),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_ops_know_when_they_are_the_identity(name: str) -> None:
    attributes, rank = IDENTITIES[name]
    x = np.random.default_rng(0).normal(0, 9, (2, 3, 4, 5)[:rank]).astype(np.float32)
    op = find_op(name)([Value(type_of_array(x), Block(), 0)], attributes)
    assert op.is_identity() and op.type == op.operands[0].type
    np.testing.assert_array_equal(evaluate_op(op, [x])[0], x)


@pytest.mark.parametrize("name", OPS)
def test_a_sample_that_says_identity_of_itself_changes_nothing(name: str) -> None:
    op = sample(name)
    if op.is_identity() and len(op.results) == 1 and op.type == op.operands[0].type:
        arrays = draw(name)
        np.testing.assert_array_equal(run(op, arrays)[0], arrays[0])


def test_every_op_that_may_be_the_identity_is_tried_as_such() -> None:
    never = "max_pool_mask"  # denies what max_pool says
    asked = {name for name, cls in load_all().items() if cls.is_identity is not TensorOp.is_identity}
    assert {name for name in asked if name in OPS} - {never} == set(IDENTITIES)


@pytest.mark.parametrize("name", OPS)
def test_weight_operands_are_declared_operands_behind_the_data(name: str) -> None:
    op = sample(name)
    names = [each.name for each in op.ins]
    assert set(op.weight_operands) <= set(names[1:])


def test_attributes_that_name_axes_say_so() -> None:
    """By name: such an attribute of a new op is found by the passes that permute or batch."""
    named = {"axis": (Axis,), "axes": (Axes,)}
    for cls in load_all().values():
        for name, spec in cls.attrs.items():
            assert spec.kind in named.get(name, (spec.kind,)), f"{cls.opname}.{name}"
        kinds = {spec.kind for spec in cls.attrs.values()}
        assert not cls.follows_axes or kinds & {Axis, Axes, PerAxis, PerAxisPairs}, cls.opname


@pytest.mark.parametrize("name", claiming(lambda op: op.homogeneous))
def test_homogeneous_ops_hand_positive_factors_on_channel_by_channel(name: str) -> None:
    op, (x, *others) = sample(name), draw(name, signed=True)
    factors = np.exp(np.random.default_rng(1).normal(size=x.shape[1])).astype(x.dtype)
    factors = factors.reshape(-1, *(1,) * (x.ndim - 2))
    equal(run(op, [x * factors, *others]), [y * factors for y in run(op, [x, *others])])


@pytest.mark.parametrize("name", claiming(lambda op: op.confident))
def test_confidences_grow_with_the_element_at_their_place_to_one_at_most(name: str) -> None:
    op, (x,) = sample(name), draw(name, signed=True)
    (before,) = run(op, [x])
    assert before.max() <= 1
    for place in range(0, x.size, 7):
        more = x.copy()
        more.flat[place] += 1
        (after,) = run(op, [more])
        assert after.flat[place] >= before.flat[place]


@pytest.mark.parametrize("name", claiming(lambda op: op.steep))
def test_slopes_of_steep_ops_differ_hundreds_of_times(name: str) -> None:
    op = sample(name)
    x = np.geomspace(1e-3, 30, 1000).astype(np.float64)
    others = [np.full_like(x, 3.0)] if len(op.operands) > 1 else []
    (y,) = (a.astype(np.float64) for a in run(op, [x.astype(np.float32), *(o.astype(np.float32) for o in others)]))
    slopes = np.abs(np.diff(y) / np.diff(x))
    assert slopes.max() > 100 * slopes.min()


def test_ops_that_pick_jump_and_so_are_none_of_those_that_keep_close() -> None:
    names = claiming(lambda op: op.picks)
    assert {"top_k", "arg"} <= set(names)
    assert not any(sample(name).affine or sample(name).moves_only or sample(name).homogeneous for name in names)
