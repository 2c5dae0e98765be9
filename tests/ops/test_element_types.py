"""Every op in every element type that a kernel takes: the chip computes what `evaluate` says, and no kernel fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from op_samples import SAMPLES, random_array

from bmcompiler.errors import BMError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ir.keys import WEIGHT
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session
from bmcompiler.target import find_target, unsupported_reason

CHIPS = ("bm1684", "bm1684x", "bm1880", "dv700")
INTEGERS = ("i8", "u8", "i16", "u16", "i32")
TYPES = ("f32", "f16", "bf16", *INTEGERS)
REPLACED: tuple[frozenset[str], ...] = (frozenset({"f32"}), frozenset(INTEGERS), frozenset({"f32", *INTEGERS}))
"""Which operands of a sample have another type."""
BORDERLESS = ("bf16", "bool")
EXTREMES = (0.0, -0.0, np.inf, -np.inf, 1e-40, -1e-40, 65504.0, -65504.0, 1e30, -1e30, 1.0, -1.0, 0.5, 2.5)


class _Retyped:
    """A builder whose ops have results of a type, where a sample states them."""

    def __init__(self, builder: Builder, dtype: str | None) -> None:
        self.builder, self.dtype = builder, dtype

    def __getattr__(self, name: str) -> Any:
        make = getattr(self.builder, name)

        def create(*operands: Any, out: TensorType | None = None, **attributes: Any) -> Any:
            wanted = out if out is None or self.dtype is None else out.with_dtype(self.dtype)
            return make(*operands, out=wanted, **attributes)

        return create if name != "weight" else make


def _typed(name: str, old: frozenset[str], new: str, result: str | None, constant: bool, kept: int) -> Module | None:
    """The sample of an op with operands of the types `old` in another one; None where the op has no such form.

    constant: all operands but the first are weights. kept: from which operand on types stay, as that of a bias may.

    What no model file holds, bf16 and bool, is f32 at the border.
    """
    types, make = SAMPLES[name]
    builder = Builder.new("net")

    def given(i: int, type: TensorType) -> Value:
        wanted = TensorType(type.shape, new) if type.dtype in old and i < kept else type
        if constant and i:
            return builder.weight(random_array(np.random.default_rng(i), wanted), f"w{i}")
        if wanted.dtype not in BORDERLESS:
            return builder.input(f"x{i}", wanted)
        return builder.cast(builder.input(f"x{i}", wanted.with_dtype("f32")), dtype=wanted.dtype)

    try:
        made = make(_Retyped(builder, result), *(given(i, type) for i, type in enumerate(types)))
        values: Sequence[Value] = made if isinstance(made, tuple) else (made,)
        ends = [builder.cast(value, dtype="f32") if value.dtype in BORDERLESS else value for value in values]
        module = builder.outputs(ends, [f"y{i}" for i in range(len(ends))])
        verify_module(module)
    except BMError:
        return None
    return module


def _forms(name: str, types: Sequence[str] = TYPES) -> Iterator[Module]:
    """The sample of an op in all of `types` that it has a form for, each once."""
    seen = set()
    operands = len(SAMPLES[name][0])
    kept = (operands, 2) if operands > 2 else (operands,)
    for form in product(REPLACED, types, (None, *types), (False, True)[: max(1, operands)], kept):
        module = _typed(name, *form)
        if module is None:
            continue
        values = [value for op in module.main.ops for value in (*op.operands, *op.results)]
        key = form[3], *(str(value.type) for value in values)
        if key not in seen:
            seen.add(key)
            yield module


def _extreme_array(rng: np.random.Generator, type: TensorType) -> np.ndarray:
    """Numbers of both signs and all sizes, infinities and the ends of integers among them."""
    if type.dtype == "bool":
        return random_array(rng, type)
    often = rng.random(type.shape) < 0.4
    if not type.is_float:
        info = np.iinfo(type.numpy)
        ends = rng.choice(np.array([0, 1, info.min, info.max], type.numpy), type.shape)
        return np.where(often, ends, random_array(rng, type))
    mixed = np.where(often, rng.choice(EXTREMES, type.shape), rng.normal(0, 3, type.shape))
    with np.errstate(over="ignore"):
        return mixed.astype(type.numpy)


def _takes(module: Module, chip: str) -> bool:
    """Whether kernels take all ops."""
    ops = [op for op in module.main.ops if isinstance(op, TensorOp) and op.name != WEIGHT]
    return all(unsupported_reason(find_target(chip), op) is None for op in ops)


def _need_same(module: Module, chip: str) -> None:
    target, rng = find_target(chip), np.random.default_rng(5)
    session = Session(target.compile([module], 0).model)
    for make in (random_array, _extreme_array):
        inputs = {key: make(rng, v.type) for key, v in zip(module.main.input_names, module.main.arguments)}
        with np.errstate(all="ignore"):
            found, wanted = session.run(inputs, raw=True), run_module(module, inputs, target=target)
        for key, array in wanted.items():
            kinds = [str(value.type) for value in module.main.arguments]
            assert found[key].dtype == array.dtype, (key, kinds)
            assert np.array_equal(found[key], array, equal_nan=array.dtype.kind == "f"), (key, kinds, make.__name__)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted(set(SAMPLES) - {"weight"}))
@pytest.mark.parametrize("all_chips", [False, pytest.param(True, marks=pytest.mark.sweep)], ids=["in_turns", "all"])
def test_what_a_kernel_takes_it_computes(name: str, all_chips: bool) -> None:
    """On all chips that take it, or in turns on one of these."""
    turn: Counter[tuple[str, ...]] = Counter()
    for module in _forms(name):
        chips = tuple(chip for chip in CHIPS if _takes(module, chip))
        for chip in chips if all_chips else chips[turn[chips] % max(1, len(chips)) :][:1]:
            _need_same(module, chip)
        turn[chips] += 1


@pytest.mark.parametrize("name", sorted(set(SAMPLES) - {"weight"}))
def test_what_no_kernel_takes_costs_nothing_known(name: str) -> None:
    """Passes ask of any op of a net, those of the host CPU among them."""
    for module in _forms(name, ("f32", "i8", "i64", "bool")):
        for target in map(find_target, CHIPS):
            for op in module.main.ops:
                if not isinstance(op, TensorOp) or op.name == WEIGHT:
                    continue
                known = [target.cycles(op), target.moving_cycles(op), target.local_cycles(op)]
                assert unsupported_reason(target, op) is None or known == [None] * 3, (target.name, op)


@pytest.mark.parametrize(
    "chip, name, dtype",
    [
        ("bm1684x", "mul", "f16"),
        ("bm1684x", "add", "bf16"),
        ("bm1684x", "max_pool", "f16"),
        ("bm1684x", "conv", "f16"),
        ("bm1684x", "matmul", "bf16"),
        ("bm1684", "div", "u16"),
        ("bm1684", "permute", "i8"),
        ("bm1684", "mul_shift", "u8"),
        ("bm1880", "concat", "i8"),
    ],
)
def test_forms_that_a_kernel_takes_are_among_those(chip: str, name: str, dtype: str) -> None:
    """Else the test above looks at nothing."""
    for module in _forms(name):
        if _takes(module, chip) and any(value.dtype == dtype for op in module.main.ops for value in op.operands):
            return
    raise AssertionError(f"{chip} takes no {name} of {dtype}")
