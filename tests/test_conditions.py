"""Orders of passes that make no sense are refused in a sentence, and what passes say of themselves is asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from bmcompiler import conditions
from bmcompiler.conditions import CONDITIONS, NO_GROUPS, NO_THRESHOLDS, ONE_FLOAT, THRESHOLDS, Condition, need_order
from bmcompiler.errors import UsageError, VerifyError
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.passmanager import GROUP, Pass, PassContext, PassResult, Pipeline, find_pass, pass_names, run_pipeline
from bmcompiler.pipelines import LEVELS
from bmcompiler.plugins.registry import entry_points
from bmcompiler.target import find_target

CHIPS = ("bm1684", "bm1684x", "bm1880", "dv700")
BUILT_IN = [name for name in pass_names() if entry_points(GROUP)[name].built_in]


def net(dtype: str = "f32") -> Module:
    b = Builder.new("net")
    with b.at("act"):
        x = b.relu(b.input("x", TensorType((1, 2, 4, 4), dtype)))
    return b.outputs([b.avg_pool(x, kernel=(2, 2), strides=(2, 2))], ["y"])


def context(chip: str | None = None) -> PassContext:
    data = {"x": np.random.default_rng(0).normal(size=(4, 2, 4, 4)).astype(np.float32)}
    return PassContext(target=None if chip is None else find_target(chip), data=data)


# -- orders ------------------------------------------------------------------------------------------------------------
NO_LAYOUT, NO_THRESHOLDS_YET, INTEGERS = "a net without layout", "a net without thresholds", "a quantized net"
FLOATS, SOURCE, GROUPS = "one type of floats", "a net with its source's types", "a net without groups"
CALIBRATED, SCHEME = "a calibrated net", "a scheme of the chip"
SENSELESS = [
    # (chip, precision, the pass that is moved, before which one, the pass that is refused, what it misses)
    ("bm1684x", "int8", "half-precision", "quantize", "quantize", FLOATS),
    ("bm1684x", "int8", "half-precision", "calibrate", "calibrate", SOURCE),
    ("bm1684x", "f16", "half-precision", "single-precision", "single-precision", SOURCE),
    ("bm1684x", "f16", "half-precision", "absorb-qdq", "absorb-qdq", SOURCE),
    ("bm1684x", "bf16", "window-products", "half-precision", "half-precision", NO_LAYOUT),
    ("bm1684x", "f16", "transposed-products", "half-precision", "half-precision", NO_LAYOUT),
    ("bm1684x", "int8", "fill-lanes", "quantize", "fill-lanes", INTEGERS),
    ("bm1684x", "f32", "group-layers", "fill-lanes", "fill-lanes", GROUPS),
    ("bm1684x", "f16", "group-layers", "half-precision", "half-precision", NO_LAYOUT),
    ("bm1684x", "int8", "calibrate", "canonicalize", "canonicalize", NO_THRESHOLDS_YET),
    ("bm1684x", "int8", "quantize", "calibrate", "quantize", CALIBRATED),
    ("bm1684", "int8", "quantize", "canonicalize", "quantize", CALIBRATED),
    ("bm1684", "int8", "group-layers", "quantize", "quantize", NO_LAYOUT),
    ("bm1684", "int8", "group-layers", "canonicalize", "canonicalize", NO_LAYOUT),
    ("bm1684", "int8", "group-layers", "split-deconv", "split-deconv", GROUPS),
    ("bm1684", "int8", "fill-image-slots", "quantize", "fill-image-slots", INTEGERS),
    ("bm1684", "int8", "move-bands", "calibrate", "move-bands", INTEGERS),
    ("bm1684", "int8", "cut-inputs", "calibrate", "cut-inputs", INTEGERS),
    ("bm1684", "int8", "merge-tables", "quantize", "merge-tables", INTEGERS),
    ("bm1684", "int8", "window-products", "quantize", "window-products", INTEGERS),
    ("bm1684", "int8", "join-groups", "calibrate", "calibrate", NO_LAYOUT),
    ("bm1684", "int8", "split-means", "quantize", "quantize", NO_LAYOUT),
    ("bm1684", "int8", "calibrate", "equalize", "equalize", NO_THRESHOLDS_YET),
    ("bm1684", "int8", "calibrate", "sigmoid-pairs", "sigmoid-pairs", NO_THRESHOLDS_YET),
    ("bm1684", "int8", "calibrate", "compose-convs", "compose-convs", NO_THRESHOLDS_YET),
    ("bm1684", "f32", "split-images", "legalize", "legalize", NO_LAYOUT),
    ("bm1684", "f32", "group-layers", "split-images", "split-images", GROUPS),
    ("bm1880", "int8", "calibrate", "legalize", "legalize", NO_THRESHOLDS_YET),
    ("bm1880", "int8", "integer-weights", "calibrate", "integer-weights", CALIBRATED),
    ("bm1880", "int8", "group-layers", "integer-weights", "integer-weights", NO_LAYOUT),
    ("bm1880", "int8", "quantize", "integer-weights", "integer-weights", CALIBRATED),
    ("dv700", "int8", "join-runs", "palettize", "palettize", NO_LAYOUT),
    ("dv700", "f16", "join-runs", "fuse-activation", "fuse-activation", NO_LAYOUT),
]


def moved(text: str, name: str, before: str) -> str:
    """A pipeline with its last pass of a name put before the first one of another."""
    passes = list(Pipeline.parse(text))
    at = max(i for i, each in enumerate(passes) if each.name == name)
    each = passes.pop(at)
    passes.insert(next(i for i, other in enumerate(passes) if other.name == before), each)
    return str(Pipeline(tuple(passes)))


@pytest.mark.parametrize(("chip", "precision", "name", "before", "refused", "missing"), SENSELESS)
def test_orders_that_make_no_sense_are_refused(
    chip: str, precision: str, name: str, before: str, refused: str, missing: str
) -> None:
    """Before any pass has run, in one sentence that names the pass and what it misses, with a remedy."""
    module, ctx = net(), context(chip)
    text = str(module)
    with pytest.raises(UsageError) as caught:
        run_pipeline(module, moved(find_target(chip).pipeline(precision, 2), name, before), ctx)
    assert f"the pass '{refused}' needs {missing} (" in str(caught.value)
    assert "Remedy: " in str(caught.value) and str(caught.value).count("\n") == 0
    assert str(module) == text and ctx.table is None


@pytest.mark.parametrize("chip", CHIPS)
def test_the_pipelines_of_chips_are_accepted(chip: str) -> None:
    target = find_target(chip)
    for precision in target.precisions:
        for level in LEVELS:
            need_order(Pipeline.parse(target.pipeline(precision, level)), net("f64"), context(chip))


@pytest.mark.parametrize(
    ("chip", "scheme", "has"),
    [
        ("bm1684", "shift", "bm1684 has scale"),
        ("bm1684", "channel", "bm1684 has scale"),
        ("bm1684x", "shift", "bm1684x has channel"),
        ("bm1684x", "scale", "bm1684x has channel"),
        ("bm1880", "scale", "bm1880 has shift"),
        ("dv700", "shift", "dv700 has none, for it computes no integers"),
    ],
)
def test_integers_of_another_chip_are_refused(chip: str, scheme: str, has: str) -> None:
    with pytest.raises(UsageError, match=rf"'quantize' needs a scheme of the chip .*{scheme}.*, but {has}"):
        run_pipeline(net(), f"calibrate,quantize{{scheme={scheme}}}", context(chip))
    run_pipeline(net(), f"calibrate,quantize{{scheme={scheme}}}", context())


@pytest.mark.parametrize(
    ("text", "dtype", "words"),
    [
        ("quantize", "f32", ["a calibrated net", "the net is not calibrated", "run calibrate before quantize"]),
        ("calibrate", "f16", ["one type of floats", "an input is f16", "run single-precision before calibrate"]),
        (
            "calibrate,canonicalize,quantize",
            "f32",
            ["but 'calibrate' comes before it", "run canonicalize before calib"],
        ),
        ("half-precision", "f32", ["a chip", "no chip is named", "name a target"]),
        ("fill-lanes{kind=integers}", "f32", ["a quantized net", "run quantize before fill-lanes"]),
    ],
)
def test_the_sentence_says_what_is_in_the_way_and_who_gives_it(text: str, dtype: str, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        run_pipeline(net(dtype), text, context())
    assert all(word in str(caught.value) for word in words)


def test_nets_of_a_pass_before_are_known_by_what_they_are() -> None:
    """Half a pipeline may run by itself: what the first half made is seen in the net."""
    module, ctx = net(), context("bm1684")
    run_pipeline(module, "calibrate", ctx, verify_each=True)
    with pytest.raises(UsageError, match=r"'legalize' needs a net without thresholds .*, but the net is calibrated"):
        run_pipeline(module, "legalize", ctx)
    run_pipeline(module, "quantize{scheme=scale,skip=act}", ctx, verify_each=True)
    with pytest.raises(UsageError, match=r"'calibrate' needs .*, but quantize left layers in float"):
        run_pipeline(module, "calibrate", ctx)
    run_pipeline(module, "merge-tables,legalize,fill-image-slots,group-layers", ctx, verify_each=True)


# -- what passes say ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", BUILT_IN)
def test_every_pass_says_what_it_requires_and_whether_it_loses_bits(name: str) -> None:
    cls = find_pass(name)
    assert {"requires", "loses_bits"} <= set(vars(cls)), f"{name} does not say `requires` and `loses_bits`"
    for condition in (*cls.requires, *cls.ensures, *cls.breaks):
        assert condition in CONDITIONS or condition.name == "the DV700"


def test_every_condition_is_needed_and_given_by_the_pass_that_its_remedy_names() -> None:
    passes = [find_pass(name) for name in BUILT_IN]
    for condition in CONDITIONS:
        assert any(condition in cls.requires for cls in passes)
        givers = [cls.name for cls in passes if condition in cls.ensures]
        if condition.remedy.startswith("run "):
            assert condition.remedy in [f"run {giver} before {{name}}" for giver in givers]


def test_a_pass_made_of_others_requires_what_they_do() -> None:
    whole = find_pass("canonicalize")
    for row in whole.parts:
        part = find_pass(row.text)
        implied = {conditions.NO_GROUPS} if conditions.NO_LAYOUT in whole.requires else set()
        assert set(part.requires) <= {*whole.requires, *implied}
        assert not part.breaks and not part.loses_bits


@dataclass(frozen=True)
class Says(Pass):
    """Does nothing, or what it does not say."""

    name = "says"
    halves: bool = False

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        if self.halves:
            module.main.arguments[0].type = TensorType((1, 2, 4, 4), "f16")
        return PassResult(self.halves)


def said(changed: Pass, **conditions: tuple[Condition, ...]) -> Pass:
    """A pass of a class of its own that says this of itself."""
    return type("Said", (type(changed),), conditions)(**vars(changed))


def test_what_a_pass_ensures_is_verified() -> None:
    lies = Pipeline((said(Says(), ensures=(THRESHOLDS,)),))
    with pytest.raises(VerifyError, match=r"'says' ensures a calibrated net, but the net is not calibrated"):
        run_pipeline(net(), lies, verify_each=True)


def test_what_a_pass_breaks_without_saying_is_found() -> None:
    def ignore(module: Module) -> None:
        """The types do not fit: not the question here."""

    with pytest.raises(
        VerifyError, match=r"'says' does not say that it breaks one type of floats, but an input is f16"
    ):
        run_pipeline(net(), Pipeline((Says(True),)), verify_each=True, verify=ignore)
    run_pipeline(net(), Pipeline((said(Says(True), breaks=(ONE_FLOAT,)),)), verify_each=True, verify=ignore)
    with pytest.raises(UsageError, match=r"'calibrate' needs one type of floats .*, but an input is f16"):
        run_pipeline(net(), Pipeline((Says(True), *Pipeline.parse("calibrate"))), context())


def test_what_is_broken_may_be_given_again() -> None:
    breaks, gives = said(Says(), breaks=(NO_GROUPS,)), said(Says(), ensures=(NO_GROUPS,))
    needs = said(Says(), requires=(NO_GROUPS, NO_THRESHOLDS))
    run_pipeline(net(), Pipeline((breaks, gives, needs)))
    with pytest.raises(UsageError, match=r"needs a net without groups .*, but 'says' comes before it"):
        run_pipeline(net(), Pipeline((gives, breaks, needs)))
