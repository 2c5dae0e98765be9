"""What a newcomer's op gets from its base class alone: passes, reports, a place to run. These ops live here only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bmcompiler
from bmcompiler.api import compile_module
from bmcompiler.errors import BMError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ops import parse_module
from bmcompiler.ops.base import OPS, Axis, attr, operand
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.elements.activation import FloatUnary
from bmcompiler.ops.elements.elementwise import Binary
from bmcompiler.ops.places.shape import Moving
from bmcompiler.ops.shared import need_float, need_same_dtype
from bmcompiler.passes.layout.band_forms import band_form
from bmcompiler.passmanager import run_pipeline
from bmcompiler.quant.rebatch import rebatch
from bmcompiler.result import Result

MAPS = TensorType((1, 4, 6, 5))
CHIPS = (("bm1880", "int8"), ("bm1684", "f32"), ("bm1684", "int8"), ("dv700", "f16"))


class Hypot(Binary):
    """out = sqrt(a**2 + b**2), broadcasting; floats."""

    opname = "hypot"
    commutative = True

    def evaluate(self, a: Any, b: Any) -> Any:
        return np.hypot(a, b)

    def check(self) -> None:
        need_float(self, "a", self.a)
        need_same_dtype(self, self.operands)


class Cube(FloatUnary):
    """out = x**3; float."""

    opname = "cube"

    def evaluate(self, x: Any) -> Any:
        return x * x * x


class Mirror(Moving):
    """x from its end to its beginning along `axis`."""

    opname = "mirror"
    x = operand()
    axis = attr(Axis)
    follows_axes = True

    def infer(self) -> TensorType:
        return self.x.type

    def evaluate(self, x: Any) -> Any:
        return np.ascontiguousarray(np.flip(x, self.axis))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if they stood in `bmcompiler.ops`."""
    for op in (Hypot, Cube, Mirror):
        monkeypatch.setattr(op, "__module__", f"bmcompiler.ops.{op.opname}")
    with OPS.local({op.opname: op for op in (Hypot, Cube, Mirror)}):
        yield


def conv(b: Builder, x: Value, name: str) -> Value:
    rng = np.random.default_rng(len(name))
    weight = rng.normal(0, 0.5, (4, x.shape[1], 1, 1)).astype(np.float32)
    with b.at(name):
        return b.conv(x, b.weight(weight, name))  # type: ignore[no-any-return]


def between_convs(op: str, *, constant: tuple[int, ...] | None = None, **attributes: Any) -> Module:
    """conv -> the op -> conv; its second operand, where `constant` is its shape, is a weight."""
    b = Builder.new("net")
    operands = [conv(b, b.input("x", MAPS), "first")]
    if constant is not None:
        operands.append(b.weight(np.linspace(0.5, 2, int(np.prod(constant)), dtype=np.float32).reshape(constant), "c"))
    elif op == "hypot":
        operands.append(conv(b, b.input("z", MAPS), "other"))
    with b.at("the op"):
        y = getattr(b, op)(*operands, **attributes)
    module = b.outputs([conv(b, y, "last")], ["y"])
    verify_module(module)
    return module


def data(module: Module, samples: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    named = zip(module.main.input_names, module.main.arguments)
    return {name: rng.normal(0, 1, (samples * v.shape[0], *v.shape[1:])).astype(np.float32) for name, v in named}


def names(module: Module) -> list[str]:
    return [op.short_name for op in module.main.ops[:-1] if op.operands]


def canonical(module: Module) -> Module:
    """Canonicalized; what the net computes stays."""
    inputs = data(module)
    before = run_module(module, inputs)
    run_pipeline(module, "canonicalize", verify_each=True)
    for name, array in run_module(module, inputs).items():
        np.testing.assert_allclose(array, before[name], rtol=1e-5, atol=1e-6)
    return module


def in_nhwc(op: str, *constants: np.ndarray, **attributes: Any) -> Module:
    """conv -> permute -> the op -> permute -> conv."""
    b = Builder.new("net")
    x = b.permute(conv(b, b.input("x", MAPS), "first"), order=(0, 2, 3, 1))
    y = getattr(b, op)(x, *(b.weight(c, "c") for c in constants), **attributes)
    return b.outputs([conv(b, b.permute(y, order=(0, 3, 1, 2)), "last")], ["y"])


@pytest.mark.parametrize("shape", [(4,), (5, 1), (1, 6, 5, 4), ()])
def test_permutes_move_through_a_new_binary_op(shape: tuple[int, ...]) -> None:
    constant = np.linspace(0.5, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    module = canonical(in_nhwc("hypot", constant))
    assert names(module) == ["conv", "hypot", "conv"]


def test_permutes_move_through_both_operands_of_a_new_binary_op() -> None:
    b = Builder.new("net")
    x, z = (b.permute(conv(b, b.input(n, MAPS), n), order=(0, 2, 3, 1)) for n in "xz")
    module = b.outputs([conv(b, b.permute(b.hypot(x, z), order=(0, 3, 1, 2)), "last")], ["y"])
    assert names(canonical(module)) == ["conv", "conv", "hypot", "conv"]


def test_permutes_move_through_a_new_op_that_names_an_axis() -> None:
    module = canonical(in_nhwc("mirror", axis=3))
    assert names(module) == ["conv", "mirror", "conv"]
    assert [op.attributes["axis"] for op in module.main.ops if op.short_name == "mirror"] == [1]


def test_a_reshape_sinks_below_a_new_function_of_one_tensor() -> None:
    b = Builder.new("net")
    y = b.cube(b.reshape(conv(b, b.input("x", MAPS), "first"), shape=(1, 120)))
    assert names(canonical(b.outputs([b.softmax(y)], ["y"]))) == ["conv", "cube", "reshape", "softmax"]


def test_a_new_op_on_constants_becomes_a_constant() -> None:
    b = Builder.new("net")
    arrays = [np.full((4, 1, 1), value, np.float32) for value in (3, 4)]
    total = b.hypot(*(b.weight(a, f"w{i}") for i, a in enumerate(arrays)))
    b.input("x", MAPS)
    module = canonical(b.outputs([total], ["y"]))
    assert names(module) == []
    assert [array.reshape(-1).tolist() for array in module.weights.values()] == [[5.0] * 4]


def test_a_new_op_is_written_and_read_as_text() -> None:
    module = between_convs("hypot", constant=(4, 1, 1))
    assert '= "tensorop.hypot"(' in str(module) and str(parse_module(str(module))) == str(module)


def test_a_wrong_use_of_a_new_op_is_one_sentence() -> None:
    b = Builder.new("net")
    with pytest.raises(BMError, match=r"shapes \[1, 4, 6, 5\] and \[3\] do not broadcast"):
        b.hypot(b.input("x", MAPS), b.input("z", TensorType((3,))))


def test_calibration_may_run_many_samples_through_a_new_op_at_once() -> None:
    for module in (between_convs("hypot"), between_convs("mirror", axis=1)):
        copy = rebatch(module.main, 3)
        assert copy is not None and copy.returned[0].shape == (3, 4, 6, 5)
    module = between_convs("mirror", axis=0)
    assert rebatch(module.main, 3) is None


def test_a_new_binary_op_has_a_form_on_bands_of_rows() -> None:
    (op,) = [op for op in between_convs("hypot").main.ops if op.short_name == "hypot"]
    form = band_form(op, 4)  # type: ignore[arg-type]
    assert form is not None and form.operands == (0, 1) and (form.top, form.bottom) == (0, 0)


def compiled(module: Module, chip: str, precision: str) -> Result:
    calibration = {"data": data(module, 4)} if precision == "int8" else {}
    return compile_module(module, target=chip, quantize=precision, **calibration)


def nearly(module: Module, result: Result, tolerance: float = 0.1) -> None:
    """The compiled net computes what the float net does, but for its precision."""
    inputs = data(module)
    wanted = run_module(module, inputs)["y"]
    got = bmcompiler.runtime.Session(result.model).run(inputs)["y"]
    assert np.abs(got - wanted).max() <= tolerance * np.abs(wanted).max()


def row(result: Result) -> Any:
    """The row of the op itself, without conversions at its borders."""
    found = {row.kind: row for row in result.rows if row.layer == "the op"}
    (kind,) = found.keys() - {"quantize", "dequantize"}
    return found[kind]


@pytest.mark.parametrize(("chip", "precision"), CHIPS)
@pytest.mark.parametrize("constant", [None, (4, 1, 1)])
def test_a_new_binary_op_runs_on_the_host_and_the_summary_says_why(
    chip: str, precision: str, constant: tuple[int, ...] | None
) -> None:
    module = between_convs("hypot", constant=constant)
    result = compiled(module, chip, precision)
    reason = "'hypot' has no int8 form" if chip == "bm1880" else f"{chip} has no kernel for 'hypot'"
    assert (row(result).kind, row(result).where, row(result).reason) == ("hypot", "cpu", reason)
    assert {r.where for r in result.rows if r.kind.startswith("conv")} == {chip}
    nearly(module, result)


def test_a_new_function_of_one_tensor_is_a_table_on_the_chip() -> None:
    module = between_convs("cube")
    result = compiled(module, "bm1880", "int8")
    assert row(result).where == "bm1880" and row(result).kind == "lut"
    nearly(module, result, 0.2)


@pytest.mark.parametrize(("chip", "precision"), CHIPS)
def test_a_new_moving_op_lacks_nothing_but_a_kernel(chip: str, precision: str) -> None:
    module = between_convs("mirror", axis=2)
    result = compiled(module, chip, precision)
    assert (row(result).where, row(result).reason) == ("cpu", f"{chip} has no kernel for 'mirror'")
    nearly(module, result)


def test_the_list_of_supported_ops_has_a_new_op(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "tools"))
    from supported_ops.page import declared

    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in declared().splitlines()]
    monkeypatch.delitem(sys.modules, "supported_ops.page")
    found = {cells[0]: cells[1:] for cells in rows if cells[0] in ("hypot", "cube", "mirror", "add")}
    assert len(found) == 4
    assert found["hypot"][:2] == ["-", "spread"] and set(found["hypot"][2:]) == {"-"}
    assert found["cube"][0] == found["mirror"][0] == "yes"


def test_the_ops_of_these_tests_are_gone_afterwards() -> None:
    with OPS.local({}):
        assert "hypot" in OPS.entries()
    assert OPS._entries.keys().isdisjoint(("hypot", "cube", "mirror"))
