"""What layers need goes from ops to those that take their place, however these compute it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from bmcompiler.errors import VerifyError
from bmcompiler.ir import Module, Operation, Rewriter, TensorType
from bmcompiler.ir.carrying import carry_macs
from bmcompiler.ir.keys import MACS, PLACE_CPU, TENSOR_NAME
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.rewriting import make
from bmcompiler.passmanager import Pass, PassContext, PassResult, Pipeline, run_pipeline


def net() -> Module:
    """Two convolutions on one input; the second has a relu behind it."""
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 2, 5, 4)))
    with b.at("a"):
        first = b.conv(x, b.weight(np.ones((4, 2, 1, 1), np.float32), "w"))
    with b.at("b"):
        last = b.relu(b.conv(first, b.weight(np.ones((6, 4, 1, 1), np.float32), "v")))
    return b.outputs([last], ["y"])


def convs(module: Module) -> list[Operation]:
    return [op for op in module.main.ops if op.short_name == "conv"]


NEEDED = {"a": 20 * 4 * 2, "b": 20 * 6 * 4}


@pytest.mark.parametrize(
    ("replaced", "shares"),
    [
        ([(("a",), 100), (("b",), 70)], [100, 70]),  # each to the op of its name
        ([(("c",), 101)], [25, 76]),  # a name that none bears: 160 to 480
        ([(("a", "b"), 0)], [0, 0]),
        ([(("a",), NEEDED["a"]), (("b",), NEEDED["b"])], [NEEDED["a"], NEEDED["b"]]),
    ],
)
def test_products_go_to_the_ops_that_bear_the_names(
    replaced: list[tuple[tuple[str, ...], int]], shares: list[int]
) -> None:
    module = net()
    made = convs(module)
    carry_macs(replaced, module.main.ops[:-1])
    assert [op.macs() for op in made] == shares
    assert [MACS in op.attributes for op in made] == [op.macs() != op.products() for op in made]
    assert sum(op.macs() for op in module.main.ops) == sum(shares)


def test_where_none_computes_products_the_last_one_has_them() -> None:
    module = net()
    carry_macs([(("a",), 7)], [op for op in module.main.ops[:-1] if op.short_name != "conv"])
    assert [op.attributes.get(MACS) for op in module.main.ops if op.short_name == "relu"] == [7]


def test_ops_that_nobody_reads_any_more_have_given_theirs() -> None:
    """A pass makes one convolution of two, and leaves the first one to whoever clears up."""
    module, rewriter = net(), Rewriter()
    first, last = convs(module)
    (end,) = [op for op in module.main.ops if op.short_name == "relu"]
    slim = make("conv", first.operands, location=("a", "b"))
    joined = make("concat", [slim.result, slim.result], {"axis": 1}, location=("b",))
    cut = make("slice", [joined.result], {"starts": (0,) * 4, "ends": (1, 6, 5, 4), "steps": (1,) * 4})
    rewriter.replace_with(end, slim, joined, cut)
    rewriter.settle()
    assert slim.macs() == sum(NEEDED.values()) and slim.products() == NEEDED["a"]
    assert first.macs() == last.macs() == 0
    assert sum(op.macs() for op in module.main.ops) == sum(NEEDED.values())


def _noted(module: Module) -> list[Operation]:
    """The computing ops of `net`, each with a name of its tensor."""
    ops = [op for op in module.main.ops if op.operands and op.results]
    for op in ops:
        op.attributes[TENSOR_NAME] = f"{op.label}/{op.short_name}"
    return ops


def test_what_takes_the_place_of_ops_bears_their_layers_and_the_notes_of_the_last() -> None:
    module, rewriter = net(), Rewriter()
    first, _, end = _noted(module)
    end.attributes[PLACE_CPU] = "slow"
    rewriter.replace_with(end, make("conv", first.operands))
    rewriter.settle()
    made = module.main.returned[0].op
    assert made is not None
    assert made.location == ("a", "b")
    assert (made.attributes[TENSOR_NAME], made.attributes[PLACE_CPU]) == ("b/relu", "slow")


def test_layers_that_other_new_ops_bear_are_not_named_twice() -> None:
    module, rewriter = net(), Rewriter()
    first, last, end = _noted(module)
    part = rewriter.insert_before(end, make("conv", first.operands), first, is_part=True)
    whole = make("conv", [part.results[0], *last.operands[1:]])
    rewriter.replace_with(end, whole)
    rewriter.settle()
    assert (part.location, whole.location) == (("a",), ("b",))
    assert TENSOR_NAME not in part.attributes and whole.attributes[TENSOR_NAME] == "b/relu"


def test_what_others_still_read_keeps_its_layers_unless_it_is_absorbed() -> None:
    for absorbed in (False, True):
        module, rewriter = net(), Rewriter()
        first, last, end = _noted(module)
        module.main.ops[-1].set_operand(0, first.result)
        fresh = make("relu", last.operands[:1])
        rewriter.replace_with(end, fresh, absorbed=[first] if absorbed else [])
        rewriter.settle()
        assert fresh.location == (("a", "b") if absorbed else ("b",))


@dataclass(frozen=True)
class _Doubles(Pass):
    """Says that layers need twice what they need, or nothing."""

    name = "doubles"
    times: int = 2

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        for op in convs(module):
            op.attributes[MACS] = self.times * op.macs()
        return PassResult(True)


@dataclass(frozen=True)
class _Clears(_Doubles):
    drops_work = True


@pytest.mark.parametrize("made", [_Doubles(2), _Doubles(0), _Clears(2)])
def test_a_pass_that_changes_what_layers_need_is_named(made: Pass) -> None:
    with pytest.raises(VerifyError, match=r"after pass doubles.*: the layers need .* 640 before"):
        run_pipeline(net(), Pipeline((made,)), verify_each=True)


@pytest.mark.parametrize("made", [_Doubles(1), _Clears(0)])
def test_a_pass_that_keeps_it_or_clears_up_is_not(made: Pass) -> None:
    assert run_pipeline(net(), Pipeline((made,)), verify_each=True)
