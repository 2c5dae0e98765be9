"""Each rule of the verifier, broken one at a time; use lists under random rewriting."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.errors import VerifyError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import (
    Block,
    Function,
    Module,
    Operation,
    Pattern,
    Rewriter,
    TensorType,
    apply_patterns,
    erase_dead,
    verify_module,
)
from bmcompiler.ops.builder import Builder

TYPE = TensorType((2, 3))


def chain() -> Module:
    """relu -> neg -> add(neg, relu), returned; an op with a region beside them."""
    builder = Builder.new("net")
    x = builder.input("x", TYPE)
    with builder.at("first"):
        a = builder.relu(x)
    with builder.at("second"):
        b = builder.neg(a)
    with builder.at("third"):
        c = builder.add(b, a)
    inner = Block([TYPE])
    inner.append(Operation("test.inner", [inner.arguments[0], b], [TYPE]))
    builder.append(Operation("test.region", [c], [], {}, [inner], ("outer",)))
    return builder.outputs([c], ["y"])


def _two_functions(module: Module) -> None:
    module.functions = (module.main, module.main)


def _no_return(module: Module) -> None:
    module.main.body.remove(module.main.ops[-1])


def _two_returns(module: Module) -> None:
    module.main.body.ops.insert(0, _owned(Operation("func.return"), module))


def _owned(op: Operation, module: Module) -> Operation:
    op.parent = module.main.body
    return op


def _set(path: str, value: Any) -> Callable[[Module], None]:
    """Break an attribute of `m.main.ops[i]`, or of what `path` names below the module."""

    def change(module: Module) -> None:
        *parents, name = path.split(".")
        item: Any = module
        for part in parents:
            item = item[int(part)] if part.isdigit() else getattr(item, part)
        if isinstance(item, (dict, list)):
            item[int(name) if isinstance(item, list) else name] = value
        else:
            setattr(item, name, value)

    return change


def _swap(module: Module) -> None:
    ops = module.main.ops
    ops[0], ops[1] = ops[1], ops[0]


def _use_inner_value_outside(module: Module) -> None:
    inner = module.main.ops[3].regions[0].ops[0]
    module.main.ops[-1].set_operand(0, inner.result)


def _forget_use(module: Module) -> None:
    module.main.ops[0].result.uses.popitem()


def _invent_use(module: Module) -> None:
    module.main.ops[0].result.uses[(module.main.ops[1], 3)] = None


def _steal_result(module: Module) -> None:
    ops = module.main.ops
    ops[0].results[0].owner = ops[1]


BROKEN: list[tuple[str, Callable[[Module], None], str]] = [
    ("same function name", _two_functions, "two functions have the same name"),
    ("no return", _no_return, "does not end in func.return"),
    ("empty function", _set("main.body.ops", []), "does not end in func.return"),
    ("return in the middle", _two_returns, "elsewhere than at the end"),
    ("input names", _set("main.input_names", []), "one name per argument"),
    ("output names", _set("main.output_names", ["a", "b"]), "one name per argument"),
    ("order", _swap, "layer 'second' (tensorop.neg): operand 0 is not defined before its use"),
    ("region value outside", _use_inner_value_outside, "not defined before its use"),
    ("use list lacks", _forget_use, "operand 1 does not list this use"),
    ("use list invents", _invent_use, "first: lists a use in second (operand 3) that does not exist"),
    ("owner", _steal_result, "result 0 belongs to another operation"),
    ("parent", _set("main.body.ops.1.parent", None), "listed in a block that it does not belong to"),
    ("result index", _set("main.body.ops.1.results.0.index", 4), "belongs to another operation"),
    ("attribute value", _set("main.body.ops.3.attributes.a", object()), "attributes cannot hold object"),
    ("attribute text", _set("main.body.ops.3.attributes.a", "\ud800"), "lone surrogate"),
    ("attribute name", _set("main.body.ops.3.attributes", {1: 2}), "attribute"),
    ("location", _set("main.body.ops.1.location", ("\ud800",)), "location: text with the lone surrogate"),
    ("function name", _set("main.name", "\udfff"), "lone surrogate"),
    ("function attribute", _set("main.attributes.a", b""), "cannot hold bytes"),
    ("module attribute", _set("attributes.a", {"b": (1, {2})}), "cannot hold set"),
    ("result type", _set("main.body.ops.1.results.0.type", TensorType((2, 4))), "result shape [2, 4] should be [2, 3]"),
    ("element type", _set("main.body.ops.1.results.0.type", TensorType((2, 3), "i8")), "result type i8 should be f32"),
    ("op attribute", _set("main.body.ops.1.attributes.alpha", 1.0), "unknown attribute 'alpha'"),
    ("result count", _set("main.body.ops.1.results", []), "has 0 results"),
]


@pytest.mark.parametrize(("what", "damage", "message"), BROKEN, ids=[what for what, _, _ in BROKEN])
def test_each_broken_rule_is_reported(what: str, damage: Callable[[Module], None], message: str) -> None:
    module = chain()
    verify_module(module)
    damage(module)
    with pytest.raises(VerifyError) as caught:
        verify_module(module)
    assert message in str(caught.value)


def test_duplicate_outside_names_are_refused() -> None:
    builder = Builder.new("net")
    x = builder.input("x", TYPE)
    module = builder.outputs([x, x], ["y", "y"])
    with pytest.raises(VerifyError, match="two outputs have the same name"):
        verify_module(module)


def test_a_used_operation_cannot_be_erased() -> None:
    module = chain()
    with pytest.raises(ValueError, match="first: cannot erase"):
        module.main.ops[0].erase()
    verify_module(module)


def test_erasing_an_op_with_regions_frees_what_they_used() -> None:
    module = chain()
    module.main.ops[3].erase()
    verify_module(module)
    assert [op.short_name for op in module.main.ops[1].result.users] == ["add"]


def _drop_double_negation(op: Operation, rewriter: Rewriter) -> bool:
    source = op.operands[0].op if op.name == "tensorop.neg" else None
    if source is None or source.name != "tensorop.neg":
        return False
    rewriter.replace(op, [source.operands[0]])
    return True


def _share_add(op: Operation, rewriter: Rewriter) -> bool:
    """a + a -> relu(a) + neg(neg(a)): a new op takes the place, and there is more to rewrite."""
    if op.name != "tensorop.add" or op.operands[0] is not op.operands[1]:
        return False
    (a, _), make = op.operands, type(op)
    from bmcompiler.ops import find_op

    left = find_op("relu")([a])
    rewriter.insert_before(op, left)
    rewriter.replace_with(op, make([left.result, a]))
    return True


def _dead(op: Operation, rewriter: Rewriter) -> bool:
    if op.name == "func.return" or any(result.uses for result in op.results):
        return False
    rewriter.erase(op)
    return True


RULES: list[Pattern] = [_drop_double_negation, _share_add, _dead]


def random_net(rng: random.Random) -> Module:
    builder = Builder.new("net")
    values = [builder.input("x", TYPE), builder.input("z", TYPE)]
    for index in range(rng.randint(1, 25)):
        with builder.at(f"l{index}"):
            if rng.random() < 0.5:
                values.append(builder.neg(rng.choice(values[-4:])))
            else:
                values.append(builder.add(rng.choice(values), rng.choice(values[-2:])))
    count = rng.randint(1, 3)
    return builder.outputs(rng.choices(values, k=count), [f"y{i}" for i in range(count)])


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_patterns_keep_the_module_sound(seed: int) -> None:
    module = random_net(random.Random(seed))
    apply_patterns(module.main, RULES)
    verify_module(module)
    assert not apply_patterns(module.main, RULES)
    assert not erase_dead(module.main)
    for op in module.main.ops:
        source = op.operands[0].op if op.name == "tensorop.neg" else None
        assert source is None or source.name != "tensorop.neg"
        assert op.location or op.name in ("func.return", "tensorop.relu")


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_operand_changes_keep_the_use_lists_right(seed: int) -> None:
    rng = random.Random(seed)
    module = random_net(rng)
    function = module.main
    inputs = {name: np.ones((2, 3), np.float32) for name in ("x", "z")}
    for _ in range(20):
        position = rng.randrange(len(function.ops))
        op = function.ops[position]
        above = [*function.arguments, *(value for each in function.ops[:position] for value in each.results)]
        action = rng.randrange(4)
        if action == 0 and op.operands:
            op.set_operand(rng.randrange(len(op.operands)), rng.choice(above))
        elif action == 1 and op.results:
            op.result.replace_all_uses_with(rng.choice(above))
        elif action == 2:
            for index in range(len(op.operands)):
                op.set_operand(index, rng.choice(above))
        else:
            erase_dead(function)
        verify_module(module)
    assert len(run_module(module, inputs)) == len(function.output_names)


def test_patterns_that_undo_each_other_are_stopped() -> None:
    def swap(op: Operation, rewriter: Rewriter) -> bool:
        if op.name != "tensorop.add":
            return False
        for index, value in enumerate(op.operands[::-1]):
            op.set_operand(index, value)
        rewriter.changed(op)
        return True

    with pytest.raises(RuntimeError, match=r"do not settle in function net .*third"):
        apply_patterns(chain().main, [swap], max_rewrites=50)


def test_replace_needs_as_many_values_as_results() -> None:
    module = chain()
    with pytest.raises(ValueError):
        Rewriter().replace(module.main.ops[0], [])
    with pytest.raises(ValueError, match="is in no block"):
        Rewriter().insert_before(Operation("test.loose"), Operation("test.other"))


def test_function_without_return_says_so() -> None:
    with pytest.raises(ValueError, match=r"f has no func\.return"):
        _ = Function("f").returned
