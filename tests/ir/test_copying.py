"""Copies of modules: the same text, and nothing shared but the arrays of weights."""

from __future__ import annotations

import numpy as np

from bmcompiler.ir import Block, Function, Module, Operation, TensorType, copy_module, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passmanager import run_pipeline


def net() -> Module:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 3, 4, 4)))
    with b.at("conv"):
        y = b.conv(x, b.weight(np.ones((2, 3, 1, 1), np.float32), "w"))
    with b.at("relu"):
        y = b.relu(y)
    module = b.outputs([y, x], ["y", "again"])
    module.attributes["notes"] = ("read from nowhere",)
    return module


def test_a_copy_is_equal_and_of_the_same_classes() -> None:
    module = net()
    made = copy_module(module)
    verify_module(made)
    assert str(made) == str(module) and made.attributes == module.attributes
    assert [type(op) for op in made.walk()] == [type(op) for op in module.walk()]
    assert not {id(op) for op in made.walk()} & {id(op) for op in module.walk()}
    (key,) = module.weights
    assert made.weights[key] is module.weights[key]


def test_what_passes_do_to_a_copy_leaves_the_module_alone() -> None:
    module = net()
    before = str(module)
    made = copy_module(module)
    assert run_pipeline(made, "fuse-activation")
    made.main.input_names[0], made.main.attributes["changed"] = "other", True
    made.weights["new"] = np.zeros(1, np.float32)
    assert str(made) != before == str(module)
    assert len(module.weights) == 1 and "changed" not in module.main.attributes
    verify_module(module)


def test_inner_regions_are_copied_with_what_they_take_from_outside() -> None:
    type = TensorType((2,))
    function = Function("f", [type], ["x"])
    (x,) = function.arguments
    region = Block([type])
    region.append(Operation("test.sum", [region.arguments[0], x], [type]))
    loop = function.body.append(Operation("test.loop", [x], [type], regions=[region]))
    function.set_outputs(loop.results, ["y"])
    module = Module([function])
    made = copy_module(module)
    assert str(made) == str(module)
    new_loop = made.main.ops[0]
    (inner,) = new_loop.regions
    assert inner.owner is new_loop and inner.ops[0].operands == [inner.arguments[0], made.main.arguments[0]]
    assert made.main.arguments[0].users == [new_loop, inner.ops[0]] and x.users == [region.ops[0], loop]
