"""Elements picked and replaced at indices of run time, on the chip: what detectors keep, caches of keys and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import bmcompiler
from bmcompiler.analysis.estimate import estimate
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session

CHIP = "bm1684x"
Shape = tuple[int, ...]
Make = Callable[[Builder, list[Value]], Value]


def net(make: Make, shape: Shape, indices: Shape, updates: Shape = (), dtype: str = "f32") -> Callable[..., Module]:
    """A net of an op on data, indices (an input, or those that `build` is given) and updates, where it has some."""

    def build(at: np.ndarray | None = None) -> Module:
        b = Builder.new("net")
        inputs = [b.input("x", TensorType(shape, dtype))]
        inputs.append(b.input("at", TensorType(indices, "i32")) if at is None else b.weight(at, "at"))
        inputs += [b.input("new", TensorType(updates, dtype))] if updates else []
        return b.outputs([make(b, inputs)], ["y"])

    return build


INDEXED: dict[str, Callable[..., Module]] = {
    "rows": net(lambda b, v: b.gather(*v, axis=0), (300, 5), (7, 30)),
    "rows of tables": net(lambda b, v: b.gather(*v, axis=1), (3, 70, 5), (40,)),
    "elements of tables": net(lambda b, v: b.gather(*v, axis=2), (2, 3, 70), (40, 50)),
    "one of a row": net(lambda b, v: b.gather(*v, axis=0), (90,), ()),
    "many of a row": net(lambda b, v: b.gather(*v, axis=0), (30_000,), (70, 300)),
    "of a row beyond lanes": net(lambda b, v: b.gather(*v, axis=0), (70_000,), (50,)),
    "single tuples": net(lambda b, v: b.gather_nd(*v), (700,), (9, 80, 1)),
    "elements": net(lambda b, v: b.gather_elements(*v, axis=1), (3, 70, 5), (2, 200, 4)),
    "last elements": net(lambda b, v: b.gather_elements(*v, axis=2), (2, 9, 70), (2, 9, 11)),
    "tuples": net(lambda b, v: b.gather_nd(*v), (3, 70, 5), (9, 8, 2)),
    "tuples of all axes": net(lambda b, v: b.gather_nd(*v), (3, 7, 5), (100, 3)),
    "batches": net(lambda b, v: b.gather_nd(*v, batch_dims=1), (3, 70, 5), (3, 11, 1)),
    "new rows": net(lambda b, v: b.scatter_nd(*v), (3, 70, 5), (9, 8, 2), (9, 8, 5)),
    "many new rows": net(lambda b, v: b.scatter_nd(*v), (300, 40), (9000, 1), (9000, 40)),
    "many new elements": net(lambda b, v: b.scatter_elements(*v, axis=2), (3, 20, 9), (3, 20, 11), (3, 20, 11)),
    "new elements": net(lambda b, v: b.scatter_elements(*v, axis=1), (3, 70, 5), (2, 30, 5), (2, 30, 5)),
}


def limits(module: Module) -> list[int]:
    """Below which the members of an index must stay: one number, or one for each member."""
    (op,) = (op for op in module.main.ops if getattr(op, "index_operands", ()))
    if "nd" not in op.short_name:
        return [op.x.shape[op.axis]]
    first = op.attributes.get("batch_dims", 0)
    return list(op.x.shape[first : first + op.indices.shape[-1]])


def feeds(module: Module) -> dict[str, np.ndarray]:
    rng, found = np.random.default_rng(0), {}
    for name, value in zip(module.main.input_names, module.main.arguments):
        if value.dtype == "i32" and name == "at":
            below = np.asarray(limits(module))
            found[name] = rng.integers(-below, below, value.shape).astype(np.int32)
        else:
            found[name] = (100 * rng.standard_normal(value.shape)).astype(value.type.numpy)
    return found


def meant(module: Module, given: dict[str, np.ndarray]) -> np.ndarray:
    """In plain loops."""
    (op,) = (op for op in module.main.ops if getattr(op, "index_operands", ()))
    x, at = given["x"], given["at"]
    if op.short_name == "gather":
        return np.stack([np.take(x, int(i), axis=op.axis) for i in at.ravel()], op.axis).reshape(op.type.shape)
    y = x.copy() if "new" in given else np.empty(op.type.shape, x.dtype)
    nd, batch = "nd" in op.short_name, op.attributes.get("batch_dims", 0)
    for place in np.ndindex(at.shape[:-1] if nd else at.shape):
        if nd:
            there = (*place[:batch], *map(int, at[place]))
        else:
            there = tuple(int(at[place]) if axis == op.axis else i for axis, i in enumerate(place))
        if "new" in given:
            y[there] = given["new"][place]
        else:
            y[place] = x[there]
    return y


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("name", INDEXED)
def test_elements_are_those_of_their_places(name: str, level: bmcompiler.Level) -> None:
    module = INDEXED[name]()
    given = feeds(module)
    wanted = meant(module, given)
    result = bmcompiler.compile_module(module, target=CHIP, quantize="f32", opt=level)
    assert {layer.where for layer in result.rows} <= {CHIP, "view"}
    np.testing.assert_array_equal(Session(result.model).run(given)["y"], wanted)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("name", ["many of a row", "single tuples", "elements", "many new rows", "many new elements"])
def test_constants_that_are_too_many_for_copies_are_data(name: str, dtype: type[np.integer[Any]]) -> None:
    module = INDEXED[name]()
    given = feeds(module)
    wanted = meant(module, given)
    fixed = INDEXED[name](given.pop("at").astype(dtype))
    result = bmcompiler.compile_module(fixed, target=CHIP, quantize="f32", check="always")
    assert {layer.where for layer in result.rows} <= {CHIP, "view"}
    np.testing.assert_array_equal(Session(result.model).run(given)["y"], wanted)


@pytest.mark.parametrize("shape", [(2, 33, 3), (1, 500)])
@pytest.mark.parametrize("dtype", ["i32", "i8", "u8", "i16"])
def test_elements_of_any_width_move(dtype: str, shape: Shape) -> None:
    module = net(lambda b, v: b.gather(*v, axis=1), shape, (70,), dtype=dtype)()
    given = feeds(module)
    wanted = meant(module, given)
    result = bmcompiler.compile_module(module, target=CHIP, quantize="f32")
    assert {layer.where for layer in result.rows} <= {CHIP, "view"}
    np.testing.assert_array_equal(Session(result.model).run(given)["y"], wanted)


def test_what_an_op_makes_is_picked_from_where_it_was_stored() -> None:
    """Tables are read from global memory: what makes them may not keep them in local memory alone."""
    b = Builder.new("net")
    x, at = b.input("x", TensorType((1, 8, 40, 3), "f32")), b.input("at", TensorType((5,), "i32"))
    made = b.relu(b.add(x, x))
    module = b.outputs([b.relu(b.gather(b.reshape(made, shape=(8, 120)), at, axis=1))], ["y"])
    rng = np.random.default_rng(0)
    given = {
        "x": rng.standard_normal((1, 8, 40, 3)).astype(np.float32),
        "at": np.array([3, 119, -1, 0, -120], np.int32),
    }
    result = bmcompiler.compile_module(module, target=CHIP, quantize="f32")
    assert {layer.where for layer in result.rows} <= {CHIP, "view"}
    wanted = np.maximum(given["x"] + given["x"], 0).reshape(8, 120)[:, given["at"]]
    np.testing.assert_array_equal(Session(result.model).run(given)["y"], wanted)


@pytest.mark.parametrize("dtype", ["f32", "i8"])
@pytest.mark.parametrize("rows", [1, 65, 32_767, 32_768, 65_535, 65_536])
def test_tables_of_all_sizes_are_looked_up(rows: int, dtype: str) -> None:
    """Around what a lane takes, and what an index counts; the first and the last element are among those picked."""
    module = net(lambda b, v: b.gather(*v, axis=0), (rows,), (7, 33), dtype=dtype)()
    given = feeds(module)
    given["at"][0, :2] = -rows, rows - 1
    result = bmcompiler.compile_module(module, target=CHIP, quantize="f32")
    np.testing.assert_array_equal(Session(result.model).run(given)["y"], meant(module, given))


@pytest.mark.parametrize("name", ["many of a row", "single tuples", "elements", "last elements", "elements of tables"])
def test_elements_take_no_transfer_each(name: str) -> None:
    """As a row of 256 bytes does: 74,300 cycles for 16x48x4 elements, where lookups in lanes take 1,200."""
    module = INDEXED[name]()
    timing = estimate(bmcompiler.compile_module(module, target=CHIP, quantize="f32"))
    assert timing is not None and timing.cycles < module.main.returned[0].type.size + 2000


def test_tables_that_an_op_makes_are_looked_up_from_where_they_were_stored() -> None:
    b = Builder.new("net")
    x, at = b.input("x", TensorType((1, 8, 40, 3), "f32")), b.input("at", TensorType((500,), "i32"))
    made = b.reshape(b.relu(b.add(x, x)), shape=(960,))
    module = b.outputs([b.relu(b.gather(made, at, axis=0)), made], ["y", "z"])
    rng = np.random.default_rng(0)
    data = {
        "x": rng.standard_normal((1, 8, 40, 3)).astype(np.float32),
        "at": rng.integers(-960, 960, 500).astype(np.int32),
    }
    result = bmcompiler.compile_module(module, target=CHIP, quantize="f32", check="always")
    table = np.maximum(data["x"] + data["x"], 0).reshape(-1)
    np.testing.assert_array_equal(Session(result.model).run(data)["y"], table[data["at"]])


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_caches_take_new_rows_at_places_of_run_time(mode: str) -> None:
    """The places are i64 in the file, and i32 from the border on."""
    info = helper.make_tensor_value_info
    shape, new = [2, 3, 40, 8], [2, 3, 4, 8]
    node = helper.make_node("TensorScatter", ["past", "new", "at"], ["present"], mode=mode)
    floats = [info("past", TensorProto.FLOAT, shape), info("new", TensorProto.FLOAT, new)]
    inputs = [*floats, info("at", TensorProto.INT64, [2])]
    graph = helper.make_graph([node], "cache", inputs, [info("present", TensorProto.FLOAT, shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)])
    rng = np.random.default_rng(0)
    given = {name: rng.standard_normal(size).astype(np.float32) for name, size in (("past", shape), ("new", new))}
    given["at"] = np.array([5, 36 if mode == "linear" else 38])
    result = bmcompiler.compile(model, target=CHIP, quantize="f32")
    assert {layer.where for layer in result.rows} <= {CHIP, "view"}
    (wanted,) = ReferenceEvaluator(model).run(None, given)
    np.testing.assert_array_equal(result.run(given)["present"], wanted)
