"""Decompositions of drawn ops: whatever one drafts gives the bits of the op, of floats nearly; each drafts often.

What they draft is what was recorded (`tests/data/decompositions`): another form may be right, too, and slower.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmcompiler.errors import BMError
from bmcompiler.interpreter import evaluate_op
from bmcompiler.ir import TensorType, Value
from bmcompiler.ops import find_op
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.core import Weight
from bmcompiler.passes.support.decompositions import decompositions_of
from bmcompiler.passes.support.decompositions.base import Draft

FOLDER = Path(__file__).parents[1] / "data/decompositions"
Operand = tuple[tuple[int, ...], str, bool]
"""Shape, type, and whether it is a constant."""
Draw = Callable[[random.Random, str], tuple[list[Operand], dict[str, Any]]]
LONG = (1, 2, 3, 4, 5, 6, 8, 9, 12, 13, 35, 36)


def _map(rng: random.Random, kind: str) -> Operand:
    return (rng.choice((1, 2)), rng.choice((1, 3, 4)), rng.choice(LONG), rng.choice(LONG)), kind, False


def _pool(rng: random.Random, kind: str) -> tuple[list[Operand], dict[str, Any]]:
    x = _map(rng, kind)
    kernel = tuple(min(size, rng.choice((1, 1, 2, 3, 4, 6, 9, 12, 35))) for size in x[0][2:])
    strides = rng.choice((kernel, kernel, (1, 1), (2, 2), (1, 3)))
    pads = tuple(rng.choice((0, 0, 0, 1, kernel[at // 2] - 1)) for at in range(4)) if rng.random() < 0.5 else (0,) * 4
    pads = tuple(min(pad, kernel[at // 2] - 1) for at, pad in enumerate(pads))
    return [x], {"kernel": kernel, "strides": strides, "pads": pads, "ceil_mode": rng.random() < 0.3}


def _max_pool(rng: random.Random, kind: str) -> tuple[list[Operand], dict[str, Any]]:
    operands, attributes = _pool(rng, kind)
    return operands, attributes | {"dilations": rng.choice(((1, 1), (1, 1), (2, 1), (1, 3), (2, 2)))}


def _avg_pool(rng: random.Random, kind: str) -> tuple[list[Operand], dict[str, Any]]:
    operands, attributes = _pool(rng, kind)
    return operands, attributes | {"count_include_pad": rng.random() < 0.5}


def _conv(rng: random.Random, kind: str) -> tuple[list[Operand], dict[str, Any]]:
    x = _map(rng, kind)
    group = rng.choice((1, 1, x[0][1]))
    weight = (group * rng.choice((1, 2)), x[0][1] // group, rng.choice((1, 2, 3, 4)), rng.choice((1, 2, 3)))
    attributes = {"group": group, "strides": rng.choice(((1, 1), (2, 1), (2, 2), (3, 4))),
                  "dilations": rng.choice(((1, 1), (1, 1), (2, 2), (1, 3), (8, 1), (18, 1))),
                  "pads": tuple(rng.choice((0, 0, 1, 2, 5, 8, 16)) for _ in range(4))}  # fmt: skip
    return [x, (weight, kind, True)], attributes | ({"rshift": 6} if kind == "i8" else {})


def _deconv(rng: random.Random, kind: str) -> tuple[list[Operand], dict[str, Any]]:
    x = _map(rng, kind)
    kernel, pads = (rng.choice((1, 2, 3)), rng.choice((1, 2, 4))), tuple(rng.choice((0, 0, 1)) for _ in range(4))
    attributes = {"strides": rng.choice((kernel, (3, 4), (2, 2))), "pads": pads}
    return [x, ((x[0][1], 2, *kernel), kind, True)], attributes | ({"rshift": 6} if kind == "i8" else {})


def _matmul(rng: random.Random, kind: str) -> tuple[list[Operand], dict[str, Any]]:
    m, k, n = (rng.choice((1, 3, 5, 8)) for _ in range(3))
    turned = {side: rng.random() < 0.3 for side in ("transpose_left", "transpose_right")}
    batch = rng.choice(((), (), (2,), (2, 3)))
    left = (*batch, *((k, m) if turned["transpose_left"] else (m, k)))
    right = (*rng.choice((batch, (1,) * len(batch), ())), *((n, k) if turned["transpose_right"] else (k, n)))
    constant = rng.choice(("", "left", "right"))
    operands = [(left, kind, constant == "left"), (right, kind, constant == "right")]
    return operands, turned | ({"rshift": 6} if kind == "i8" else {})


def _pad(rng: random.Random, kind: str) -> tuple[list[Operand], dict[str, Any]]:
    x = _map(rng, kind)
    pads = tuple(min(rng.choice((0, 0, 0, 1, 2, 5)), size - 1) for size in x[0] for _ in range(2))
    return [x], {"pads": pads, "mode": rng.choice(("reflect", "edge", "symmetric"))}


def _reduce(rng: random.Random, kind: str) -> tuple[list[Operand], dict[str, Any]]:
    x = _map(rng, kind)
    axes = tuple(sorted(rng.sample(range(4), rng.choice((1, 1, 2, 3)))))
    method = rng.choice(("sum", "mean", "max", "min", "prod", "l1"))
    return [x], {"method": method, "axes": axes, "keepdims": rng.random() < 0.5}


def _two(rng: random.Random, kind: str) -> tuple[list[Operand], dict[str, Any]]:
    x = _map(rng, kind)
    other = tuple(size if rng.random() < 0.6 else 1 for size in x[0])[rng.choice((0, 0, 1, 2)) :]
    return [x, (other, kind, rng.random() < 0.3)], {}


def _norm(rng: random.Random, kind: str) -> tuple[list[Operand], dict[str, Any]]:
    return [_map(rng, kind)], {"axes": rng.choice(((1, 2, 3), (2, 3), (3,)))}


def _resize(rng: random.Random, kind: str) -> tuple[list[Operand], dict[str, Any]]:
    x = _map(rng, kind)
    sizes = (*x[0][:2], *(max(1, rng.choice((size, 2 * size, size // 2, size + 3))) for size in x[0][2:]))
    scales = tuple(want / have for want, have in zip(sizes, x[0]))
    coordinates = rng.choice(("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"))
    return [x], {
        "sizes": sizes,
        "scales": scales,
        "mode": rng.choice(("linear", "nearest")),
        "coordinates": coordinates,
    }


DRAWS: dict[str, Draw] = {
    **{"max_pool": _max_pool, "avg_pool": _avg_pool, "conv": _conv, "deconv": _deconv, "matmul": _matmul, "pad": _pad},
    **{"reduce": _reduce, "mul": _two, "div": _two, "sub": _two, "add": _two, "resize": _resize},
    **{"mean_variance_norm": _norm},
}
EACH, MANY = 60, {"max_pool": 150, "avg_pool": 150, "conv": 150}
SEEN = {"f32": 25, "i8": 18}
"""Decompositions that draft something, each of them several times."""


def text(draft: Draft) -> str:
    """The ops of a draft, with digests of its weights."""
    numbers = {value: index for index, value in enumerate(value for new in draft.ops for value in new.results)}
    lines = []
    for new in draft.ops:
        given = {name: value for name, value in new.attributes.items() if name != "key"}
        weight = draft.module.weights[new.key].tobytes().hex() if isinstance(new, Weight) else ""
        operands = [numbers.get(value, "operand") for value in new.operands]
        lines.append(
            f"{new.opname} {operands} {sorted(given.items())} {[str(each.type) for each in new.results]} {weight}"
        )
    return "\n".join(lines)


def check(op: TensorOp, draft_of: Callable[[str], Draft], arrays: dict[Value, Any]) -> dict[str, str]:
    """What is drafted for an op, by the names of those that do; it is compared."""
    (want,), drafts = evaluate_op(op, [arrays[value] for value in op.operands]), {}
    for rule in decompositions_of(op):
        draft, known = draft_of(rule.__name__), dict(arrays)
        value = rule(op, draft)
        if value is None:
            continue
        for new in draft.ops:
            if isinstance(new, Weight):
                known[new.result] = draft.module.weights[new.key]
            else:
                known |= zip(new.results, evaluate_op(new, [known[each] for each in new.operands]))
        said = f"{rule.__name__} of {op.opname} {op.attributes} of {[each.shape for each in op.operands]}"
        assert (known[value].dtype, known[value].shape, value.type) == (want.dtype, want.shape, op.type), said
        if op.type.is_float:
            np.testing.assert_allclose(known[value], want, rtol=1e-4, atol=1e-4, err_msg=said)
        else:
            np.testing.assert_array_equal(known[value], want, said)
        drafts[rule.__name__] = text(draft)
    return drafts


def built(rng: random.Random, name: str, kind: str) -> dict[str, str]:
    """`check` of a drawn op on small whole numbers; nothing where there is no such op."""
    given, attributes = DRAWS[name](rng, kind)
    builder, arrays, operands = Builder.new("net"), {}, []
    for index, (shape, dtype, constant) in enumerate(given):
        type_ = TensorType(shape, dtype)
        numbers = np.random.default_rng(rng.randrange(1 << 30)).integers(-9, 10, shape).astype(type_.numpy)
        numbers = np.where(numbers == 0, 3, numbers).astype(type_.numpy) if name == "div" else numbers
        made = builder.weight(numbers, "w") if constant else builder.input(f"x{index}", type_)
        arrays[made] = numbers
        operands.append(made)
    try:
        op = find_op(name)(operands, attributes, None, ("layer",))
        builder.append(op)
        op.check()
    except BMError:
        return {}
    return check(op, lambda rule: Draft(builder.module, op, rule), arrays)


@pytest.mark.parametrize("kind", SEEN)
def test_drawn_ops_are_what_they_are_decomposed_into(kind: str, golden: Callable[[Path, str], None]) -> None:
    met: Counter[str] = Counter()
    told: dict[str, Any] = {}
    for name in DRAWS:
        rng = random.Random(f"{name} {kind}")
        for _ in range(MANY.get(name, EACH)):
            for rule, draft in built(rng, name, kind).items():
                met[rule] += 1
                told.setdefault(f"{name} {rule}", blake2b(digest_size=5)).update(f"{draft}\n\n".encode())
    assert len(met) >= SEEN[kind] and min(met.values()) > 2, met
    golden(FOLDER / f"{kind}.txt", "".join(f"{name} {digest.hexdigest()}\n" for name, digest in told.items()))
