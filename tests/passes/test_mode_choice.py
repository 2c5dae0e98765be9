"""Modes of layers: chosen from measurements, forced by a table that is written and read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_target import FakeTarget
from nets import Net, names

from bmcompiler.errors import FileFormatError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Operation
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.passes.quantization.choice import decide
from bmcompiler.passes.quantization.choice.chooser import Chooser
from bmcompiler.passes.quantization.choice.cost import cycles, rough_cycles
from bmcompiler.passes.quantization.choice.summary import Choice
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.quant.mode_table import Row, load_modes, save_modes
from bmcompiler.quant.table import CalibrationTable


class Counting(FakeTarget):
    """A target that runs everything and charges by mode."""

    name = "counting"

    def __init__(self, **charges: int) -> None:
        self.charges = charges

    def kernel_for(self, op: Operation) -> Any:
        return self

    def unsupported_reason(self, op: Operation) -> str | None:
        return None

    def cycles(self, op: Operation) -> int | None:
        return self.charges.get(op.attributes.get("mode", "float" if op.type.is_float else ""))  # type: ignore[attr-defined]


def net(seed: int = 0) -> Module:
    n = Net(seed)
    x = n.relu(n.conv(n.input(1, 3, 8, 8), n.w(8, 3, 3, 3), n.w(8)))
    x = n.relu(n.conv(x, n.w(8, 8, 3, 3), n.w(8)))
    return n.done(n.softmax(n.matmul(n.reshape(x, shape=(1, 128)), n.w(128, 5), n.w(5))))


DATA = {"data": np.random.default_rng(2).normal(0, 1, (12, 3, 8, 8)).astype(np.float32)}


def quantize(module: Module, options: str = "", target: Any = None, **context: Any) -> PassContext:
    ctx = PassContext(**{"data": DATA, "target": target, **context})
    pipeline = f"fuse-activation,calibrate{{method=max}},quantize{{scheme=scale{options}}},dead-code"
    run_pipeline(module, pipeline, ctx, verify_each=True)
    return ctx


def modes(module: Module) -> dict[str, str]:
    return {"+".join(op.location[:1]): op.attributes["mode"] for op in module.main.ops if "mode" in op.attributes}


def output_error(module: Module) -> float:
    reals = [{"data": DATA["data"][k : k + 1]} for k in range(12)]
    want = np.concatenate([run_module(net(), step)["out0"] for step in reals])
    got = np.concatenate([run_module(module, step)["out0"] for step in reals])
    return float(np.linalg.norm(got - want) / np.linalg.norm(want))


def test_cycles_decide_where_all_modes_are_exact_enough() -> None:
    cheap = net()
    notes = quantize(cheap, ",max_error=100", Counting(low=10, high=20, asymmetric=5, float=50)).notes
    assert set(modes(cheap).values()) == {"asymmetric"}
    assert "samples that the choice had not seen" in notes[0]


def test_a_bound_holds_on_other_samples_and_costs_as_little_as_can_be() -> None:
    """Tighter bounds take more cycles, and keep what they say: in the end by floats."""
    charges, spent = Counting(low=1, high=100, asymmetric=101, float=1000), []
    for percent in (100.0, 2.0, 0.5, 0.01):
        module = net()
        quantize(module, f",max_error={percent}", charges)
        assert output_error(module) <= 1.5 * percent / 100
        spent.append(sum(charges.cycles(op) or 0 for op in module.main.ops if op.short_name in ("conv", "matmul")))
    assert spent == sorted(spent) and spent[0] == 3 and spent[-1] > 1000


@pytest.mark.parametrize(("option", "mode"), [(",per_channel=true", "channel"), ("", "high")])
def test_an_option_gives_a_mode_more_to_choose_from(option: str, mode: str) -> None:
    module = net()
    quantize(module, f",max_error=100{option}", Counting(low=10, channel=5, high=7, asymmetric=20, float=50))
    assert list(modes(module).values()) == [mode, mode, "high"]  # the last result has 16 bits


@pytest.mark.parametrize(
    ("option", "choices", "last"),
    [("", 2, CHANNEL), (",second_choice=false", 1, "asymmetric"), (",per_channel=true", 1, CHANNEL)],
)
def test_a_choice_that_loses_is_made_again_unless_told_otherwise(
    option: str, choices: int, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, real = list[Chooser](), Chooser.choose
    monkeypatch.setattr(Choice, "misses", property(lambda self: True))
    monkeypatch.setattr(Chooser, "choose", lambda self, *given: (looked.append(self), real(self, *given))[1])
    quantize(net(), option, Counting(low=10, channel=5, high=7, asymmetric=20, float=50))
    assert len(looked) == choices and looked[-1].ways.modes[-1] == last


def test_a_bound_on_cycles_is_kept() -> None:
    charges = Counting(low=10, high=15, asymmetric=16, float=100)
    spent = []
    for options in ("mode=low", "max_cycles=1.2", "max_cycles=100"):
        module = net()
        quantize(module, f",{options}", charges)
        spent.append(sum(cycles(op, charges) for op in module.main.ops if op.operands and op.results))
    assert spent[0] <= spent[1] <= 1.2 * spent[0] < spent[2]


def test_methods_are_compared_on_few_samples_where_nothing_may_be_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []
    real = decide.reference_of

    def noting(module: Module, function: Any, ctx: PassContext, *most: int) -> Any:
        asked.append(most)
        return real(module, function, ctx, *most)

    monkeypatch.setattr(decide, "reference_of", noting)
    few = {}
    for most in (0.5, 1, 1.01, 2):
        asked.clear()
        ctx = PassContext(data=DATA, target=Counting(low=10, high=15, asymmetric=16, float=100))
        run_pipeline(
            net(), f"fuse-activation,calibrate{{method=auto}},quantize{{scheme=scale,max_cycles={most}}},dead-code", ctx
        )
        few[most] = (2,) in asked
    assert few == {0.5: True, 1: True, 1.01: False, 2: False}


@pytest.mark.parametrize("mode", ["low", "high", "asymmetric"])
def test_an_option_forces_one_mode(mode: str) -> None:
    module = net()
    quantize(module, f",mode={mode}")
    assert set(modes(module).values()) == {mode} and len(modes(module)) == 3


def test_without_data_the_cheapest_mode_is_taken_and_said() -> None:
    module = net()
    table = quantize(net()).table
    ctx = quantize(module, "", data=None, table=CalibrationTable.of(table.thresholds))
    assert set(modes(module).values()) == {"low"}
    assert ctx.notes == ["quantization modes: low, as there are no calibration data to measure others with"]


def test_decisions_are_written_edited_and_fed_back(tmp_path: Path) -> None:
    file = tmp_path / "net.modes"
    first, again, edited = net(), net(), net()
    notes = quantize(first, f',table="{file}"').notes
    assert notes[-1] == f"quantization table written to {file}"
    text = file.read_text()
    assert text.startswith("# bmcompiler quantization table 1\n") and "fewest cycles" in text
    assert "'softmax' has no int8 form" in text
    quantize(again, f',table="{file}"')
    assert str(again) == str(first) and file.read_text() == text
    lines = [line.split() for line in text.splitlines()[2:]]
    conv, matmul = (next(name for name, *_ in lines if name.startswith(kind)) for kind in ("relu", "matmul"))
    file.write_text(f"{conv} asymmetric\n{matmul}  float\n")
    quantize(edited, f',table="{file}",mode=low')
    assert list(modes(edited).values()) == ["asymmetric", "low"]
    (kept,) = [op for op in edited.main.ops if op.short_name == "matmul"]
    assert kept.attributes["quantize.float"] == "the quantization table says so"


def test_products_that_low_writes_in_another_way_keep_that_form(tmp_path: Path) -> None:
    def gated() -> Module:
        n = Net()
        x = n.conv(n.input(1, 3, 8, 8), n.w(8, 3, 3, 3))
        gate = n.sigmoid(n.conv(n.avg_pool(x, kernel=(6, 6)), n.w(8, 8, 1, 1)))
        return n.done(n.conv(n.mul(x, gate), n.w(4, 8, 1, 1)))

    file, first, again = tmp_path / "table", gated(), gated()
    quantize(first, f',table="{file}",mode=low')
    quantize(again, f',table="{file}",mode=high')
    assert "low" in [entry.mode for name, entry in load_modes(file).items() if "mul" in name]
    assert [op for op in names(first) if "mul" in op] == [op for op in names(again) if "mul" in op]
    assert all(op.type.dtype != "i16" for op in again.main.ops if op.short_name == "mul_shift")  # type: ignore[attr-defined]


def test_an_unknown_layer_in_a_table_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "net.modes"
    file.write_text("# comment\n\nnobody low\n")
    with pytest.raises(FileFormatError, match="line 3: 'nobody' is no layer") as caught:
        quantize(net(), f',table="{file}"')
    assert caught.value.file == str(file)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a\n", "line 1 is not 'layer mode'"),
        ("a low\nb best\n", "line 2: unknown mode 'best'"),
        ("a low\na high\n", "line 2: layer 'a' has a line already"),
        ('"a low\n', "line 1 is not 'layer mode'"),
        ('"\\x" low\n', "no JSON string"),
    ],
)
def test_broken_tables_name_the_line(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "t").write_text(text)
    with pytest.raises(FileFormatError, match=reason):
        load_modes(tmp_path / "t")
    (tmp_path / "t").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="is no text"):
        load_modes(tmp_path / "t")


def test_tables_keep_every_name(tmp_path: Path) -> None:
    layers = ["plain", "with blank", 'quo"te', "#hash", "läyer/ü:0", "tab\there", '"']
    save_modes(tmp_path / "t", [Row(name, "low", 0.012345, 17, "because\nof this") for name in layers])
    assert {name: entry.mode for name, entry in load_modes(tmp_path / "t").items()} == dict.fromkeys(layers, "low")


def test_layers_stay_in_float_where_integers_ruin_an_output() -> None:
    """Small values beside large ones in one concatenation: the boxes and scores of a detector."""
    n = Net()
    x = n.relu(n.conv(n.input(1, 3, 8, 8), n.w(8, 3, 3, 3)))
    boxes = n.conv(x, n.w(4, 8, 1, 1, low=0.0, high=40.0))
    scores = n.sigmoid(n.conv(x, n.w(2, 8, 1, 1)))
    module = n.done(n.concat(boxes, scores, axis=1))
    inputs = {"data": DATA["data"][:1]}
    want = run_module(module, inputs)["out0"]
    quantize(module)
    got = run_module(module, inputs)["out0"]
    assert np.abs(got - want)[:, 4:].max() < 0.1
    assert modes(module)  # the convolutions are integers all the same
    (joined,) = [op for op in module.main.ops if op.short_name == "concat"]
    assert joined.type.is_float  # type: ignore[attr-defined]
    assert "its parts range from" in str(joined.attributes["quantize.float"])


def test_sums_with_a_computed_mask_stay_in_float() -> None:
    """Masks of attention are made from an input: 0 where it may look, the lowest float elsewhere."""
    n = Net()
    x = n.conv(n.input(1, 3, 8, 8), n.w(4, 3, 3, 3))
    hidden = n.scale(n.relu(n.sign(x)), n.constant(np.full(4, -3e38)), axis=1)
    small = n.add(x, n.constant(np.full((1, 4, 1, 1), 1e-5)))
    module = n.done(n.softmax(n.add(x, hidden), axis=3), small)
    quantize(module, ",max_cycles=1")
    reasons = [str(op.attributes.get("quantize.float", "")) for op in module.main.ops]
    assert "it adds a mask, whose scale would leave nothing of the rest" in reasons
    assert "its results are as good as infinite" in reasons
    assert sum("mask" in reason for reason in reasons) == 1, "a small constant is no mask"


def test_rough_cycles_order_modes_and_precisions() -> None:
    costs = {}
    for mode in ("low", "high", "asymmetric"):
        module = net()
        quantize(module, f",mode={mode}")
        costs[mode] = sum(rough_cycles(op) for op in module.main.ops if op.short_name == "conv")
    floats = sum(rough_cycles(op) for op in net().main.ops if op.short_name == "conv")
    assert costs["low"] < floats and costs["low"] < costs["high"] < costs["asymmetric"]


def test_other_input_shapes_take_over_the_decisions() -> None:
    first, second = net(), net()
    ctx = quantize(first)
    ctx.notes.clear()
    run_pipeline(second, "fuse-activation,calibrate{method=max},quantize{scheme=scale},dead-code", ctx)
    assert modes(second) == modes(first) and names(second) == names(first)
    assert not ctx.notes
