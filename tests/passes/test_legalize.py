"""Legalization for BM1880: what each rule makes of a net, with equal outputs, and that nothing is left on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from nets import Net, assert_close, random_inputs
from test_quantize import feed, quantize, real_outputs, samples

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module
from bmcompiler.passes.support.decompositions import DECOMPOSITIONS
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.runtime import Session
from bmcompiler.target import find_target

GOLDEN = Path(__file__).parent / "golden" / "legalize"
ALL = "legalize{statistics=bytes}"
"""With the rules that the host's floats do better by default."""
CASES: dict[tuple[str, str], Callable[[Net], Module]] = {}


def case(*rules: str) -> Callable[[Callable[[Net], Module]], Callable[[Net], Module]]:
    def register(build: Callable[[Net], Module]) -> Callable[[Net], Module]:
        for rule in rules:
            CASES[rule, build.__name__.replace("_", "-")] = build
        return build

    return register


# -- pooling ---------------------------------------------------------------------------------------------------------
@case("strided_window_of_one")
def subsampling(n: Net) -> Module:
    x = n.input(1, 3, 7, 8)
    return n.done(
        n.max_pool(x, kernel=(1, 1), strides=(2, 2)), n.avg_pool(x, kernel=(1, 1), strides=(3, 2), ceil_mode=True)
    )


@case("border_means")
def padding_does_not_count(n: Net) -> Module:
    x = n.input(2, 3, 6, 5)
    return n.done(
        n.avg_pool(x, kernel=(3, 3), pads=(1, 1, 1, 1)),
        n.avg_pool(x, kernel=(3, 2), strides=(2, 2), ceil_mode=True, count_include_pad=True),
    )


@case("rows_then_columns", "windows_of_windows")
def images_beyond_local_memory(n: Net) -> Module:
    return n.done(
        n.avg_pool(n.input(1, 1, 300, 320), kernel=(300, 320)),
        n.max_pool(n.input(1, 1, 300, 320, name="b"), kernel=(300, 320)),
        n.max_pool(n.input(1, 2, 1, 2100, name="c"), kernel=(1, 1050), strides=(1, 1050)),
    )


@case("maximum_of_taps")
def dilated_maxima(n: Net) -> Module:
    x = n.input(1, 2, 9, 8)
    return n.done(n.max_pool(x, kernel=(3, 2), dilations=(2, 3), pads=(2, 1, 0, 0), strides=(1, 2)))


@case("padded_before")
def wide_padding(n: Net) -> Module:
    x = n.input(1, 2, 20, 20)
    return n.done(
        n.max_pool(x, kernel=(18, 18), strides=(9, 9), pads=(16, 0, 0, 16)),
        n.conv(x, n.w(3, 2, 20, 20), n.w(3), pads=(16, 2, 2, 16), strides=(2, 3)),
    )


# -- broadcasting ----------------------------------------------------------------------------------------------------
@case("factor_per_row")
def factors_of_rows(n: Net) -> Module:
    x = n.input(2, 5, 6)
    return n.done(n.mul(x, n.input(2, 5, 1, name="b")), n.mul(n.input(2, 1, 1, name="c"), x))


@case("times_reciprocals")
def divided_by_a_map(n: Net) -> Module:
    return n.done(n.div(n.input(1, 6, 4, 5), n.w(4, 5, low=0.5, high=2.0)))


@case("spread")
def spatial_attention(n: Net) -> Module:
    return n.done(n.mul(n.input(1, 6, 4, 5), n.input(1, 1, 4, 5, name="b")))


# -- reductions ------------------------------------------------------------------------------------------------------
@case("pool_over_last_axes")
def last_axes(n: Net) -> Module:
    x = n.input(2, 3, 4, 6)
    return n.done(
        n.reduce(x, method="mean", axes=(3,)),
        n.reduce(x, method="max", axes=(1, 2, 3), keepdims=False),
        n.reduce(n.input(1, 5, 8, name="b"), method="mean", axes=(2,), keepdims=False),
    )


@case("convolve_with_ones")
def channels(n: Net) -> Module:
    x = n.input(1, 3, 4, 6)
    return n.done(n.reduce(x, method="mean", axes=(1,)), n.reduce(x, method="sum", axes=(1, 2), keepdims=False))


@case("reduced_axes_last")
def axes_apart(n: Net) -> Module:
    x = n.input(2, 3, 4, 6)
    return n.done(n.reduce(x, method="max", axes=(1,)), n.reduce(x, method="mean", axes=(0, 2), keepdims=False))


@case("elementary_steps")
def other_methods(n: Net) -> Module:
    x = n.input(2, 3, 4)
    return n.done(*(n.reduce(x, method=method, axes=(2,)) for method in ("min", "l1")))


@case("kernel_as_large_as_its_step")
def steps_beyond_the_kernel(n: Net) -> Module:
    return n.done(n.deconv(n.input(1, 4, 5, 6), n.w(4, 3, 1, 2), strides=(3, 2), pads=(1, 0, 0, 1)))


@case("results_beyond_the_input")
def results_that_are_the_bias(n: Net) -> Module:
    x = n.input(1, 4, 5, 6)
    last_row = n.deconv(x, n.w(4, 3, 2, 3), n.w(3), strides=(2, 3), output_pads=(1, 2), pads=(0, 0, 1, 0))
    return n.done(last_row, n.deconv(x, n.w(4, 2, 1, 1), n.w(2), output_pads=(3, 1)))


# -- norms, softmax, division ------------------------------------------------------------------------------------------
@case("powers_over_their_sum")
def softmaxes(n: Net) -> Module:
    x = n.input(2, 3, 5)
    return n.done(n.softmax(x, axis=1), n.softmax(x, axis=-1))


@case("powers_over_their_sum")
def masked_softmaxes(n: Net) -> Module:
    """Masks that are constant, put in, and made of a condition, with -inf and with large numbers."""
    x = n.input(2, 3, 4)
    late = np.triu(np.full((3, 4), -np.inf), 1)
    seen = n.compare(n.input(2, 1, 4, name="b"), n.fill(-0.5, 1), method="greater")
    masks = [
        n.add(x, n.constant(late)),
        n.where(seen, x, n.fill(-1e9, 1)),
        n.add(x, n.where(n.bit_not(seen), n.fill(-np.inf, 1), n.fill(0.0, 1))),
    ]
    return n.done(*(n.softmax(mask, axis=2) for mask in masks))


@case("minus_the_logarithm_of_the_sum")
def log_softmaxes(n: Net) -> Module:
    return n.done(n.log_softmax(n.input(2, 3, 5), axis=2))


@case("last_axes_over_their_spread")
def norms_of_last_axes(n: Net) -> Module:
    x = n.input(2, 3, 16)
    return n.done(n.layer_norm(x, n.w(16), n.w(16), axis=2), n.rms_norm(x, n.w(3, 16), axis=1))


@case("differences_over_their_spread")
def norms_of_maps(n: Net) -> Module:
    x = n.input(2, 3, 4, 6)
    return n.done(
        n.mean_variance_norm(x, axes=(2, 3), epsilon=1e-3),
        n.mean_variance_norm(x, axes=(1, 2, 3), normalize_variance=False),
    )


@case("over_root_of_squares")
def unit_vectors(n: Net) -> Module:
    return n.done(n.l2_normalize(n.input(2, 8, 3, 3), axes=(1,), epsilon=1e-6))


@case("over_power_of_neighbours")
def neighbouring_channels(n: Net) -> Module:
    return n.done(n.lrn(n.input(2, 7, 3, 4), size=3, alpha=0.3, beta=0.75, k=1.5))


@case("functions_around_sums")
def functions_of_sums(n: Net) -> Module:
    x = n.input(2, 3, 8)
    above = n.log(n.reduce(n.exp(n.mul(x, n.fill(0.1, 1))), method="sum", axes=(2,)))
    methods = ("l2", "sum_square", "log_sum_exp")
    return n.done(above, *(n.reduce(x, method=method, axes=(1, 2), keepdims=False) for method in methods))


@case("products_of_halves")
def products_along_axes(n: Net) -> Module:
    x = n.input(2, 3, 4)
    return n.done(n.reduce(x, method="prod", axes=(1,)), n.reduce(x, method="prod", axes=(2,), keepdims=False))


@case("times_inverse")
def divided_by_what_is_computed(n: Net) -> Module:
    divisor = n.add(n.sigmoid(n.input(2, 1, 4, name="b")), n.fill(0.5, 1))
    return n.done(n.div(n.input(2, 3, 4), divisor))


@case("step_by_step_in_bytes")
def recurrent_layers(n: Net) -> Module:
    x, state = n.input(3, 2, 4), n.fill(0.0, 1, 2, 5)
    return n.done(
        n.rnn(x, n.w(1, 5, 4), n.w(1, 5, 5), n.w(1, 10), state)[0],
        n.gru(x, n.w(1, 15, 4), n.w(1, 15, 5), n.w(1, 30), state)[0],
        n.lstm(x, n.w(1, 20, 4), n.w(1, 20, 5), n.w(1, 40), state, state)[0],
    )


@case("product_of_bytes_with_waves")
def spectra(n: Net) -> Module:
    return n.done(n.dft(n.input(2, 8, 1), axis=1), n.dft(n.input(2, 5, 2, name="b"), axis=1, inverse=True))


@case("factors_choose_along_axis")
def one_class_each(n: Net) -> Module:
    labels = n.constant(np.array([[[3, 0]], [[-1, 2]]]), "int64")
    return n.done(n.gather_elements(n.input(2, 5, 2), labels, axis=1))


@case("rows_by_a_product")
def weights_of_many_labels(n: Net) -> Module:
    labels = n.constant(np.random.default_rng(5).integers(0, 5, (3, 60)), "int64")
    return n.done(n.gather(n.input(1, 5), labels, axis=1))


@case("kept_or_replaced", "rows_by_a_product")
def replaced_rows(n: Net) -> Module:
    x, rows = n.input(4, 3, 5), n.constant(np.array([[2], [0]]), "int64")
    row = n.constant(np.array([[1, 0, 2]]), "int64")
    return n.done(
        n.scatter_nd(x, rows, n.input(2, 3, 5, name="b")),
        n.scatter_elements(n.input(3, 3, name="c"), row, n.input(1, 3, name="d"), axis=0),
        n.gather_nd(x, rows),
    )


@case("product_with_taps")
def sampled_at_constant_places(n: Net) -> Module:
    x, places = n.input(2, 3, 4, 5), n.w(2, 3, 2, 2, low=-1.2, high=1.2)
    one = n.grid_sample(n.input(1, 3, 4, 5, name="b"), n.w(1, 3, 2, 2, low=-1.2, high=1.2))
    return n.done(one, n.grid_sample(x, places), n.grid_sample(x, places, mode="cubic", padding="border"))


@case("product_with_triangle")
def running_sums(n: Net) -> Module:
    x = n.input(2, 3, 4)
    other_way = n.cumulate(x, axis=2, method="sum", exclusive=True, reverse=True)
    return n.done(n.cumulate(x, axis=1, method="sum"), other_way)


# -- convolution and products ------------------------------------------------------------------------------------------
@case("space_to_channels")
def patches(n: Net) -> Module:
    x = n.input(1, 3, 50, 35)
    return n.done(
        n.conv(x, n.w(4, 3, 16, 16), n.w(4), strides=(16, 16)),
        n.conv(x, n.w(2, 3, 3, 4), strides=(17, 5), pads=(1, 0, 0, 1)),
    )


@case("dilation_to_batch")
def wide_dilation(n: Net) -> Module:
    x = n.input(1, 2, 30, 40)
    return n.done(n.conv(x, n.w(4, 1, 3, 3), n.w(4), dilations=(17, 1), pads=(17, 18, 1, 1), group=2))


@case("zeros_between_taps")
def even_dilation(n: Net) -> Module:
    x = n.input(1, 2, 30, 40)
    return n.done(n.conv(x, n.w(4, 1, 3, 3), n.w(4), dilations=(18, 1), pads=(17, 18, 1, 1), group=2))


@case("taps_that_see_the_input")
def dilation_beyond_the_map(n: Net) -> Module:
    x = n.input(1, 2, 9, 20)
    return n.done(n.conv(x, n.w(4, 2, 3, 3), n.w(4), dilations=(16, 16), pads=(16, 16, 16, 16)))


@case("windows_times_computed_weights")
def styled(n: Net) -> Module:
    weight = n.mul(n.w(4, 3, 3, 3), n.input(1, 3, 1, 1, name="b"))
    return n.done(n.conv(n.input(1, 3, 6, 5), weight, n.w(4), pads=(1, 1, 1, 1), strides=(2, 1)))


@case("taps_times_computed_weights")
def found_again(n: Net) -> Module:
    weight = n.reshape(n.input(1, 40, 3, 2, name="b"), shape=(40, 1, 3, 2))
    return n.done(n.conv(n.input(1, 40, 16, 15), weight, group=40))


@case("computed_weights_then_their_places")
def styled_and_larger(n: Net) -> Module:
    weight = n.reshape(n.input(1, 12, 2, 3, name="b"), shape=(3, 4, 2, 3))
    return n.done(n.deconv(n.input(1, 3, 6, 5), weight, n.w(4), strides=(2, 2), pads=(0, 0, 1, 1)))


@case("constant_left")
def weights_first(n: Net) -> Module:
    return n.done(
        n.matmul(n.w(5, 4), n.input(2, 4, 3)),
        n.matmul(n.w(4, 5), n.input(1, 6, 4, name="b"), transpose_left=True, transpose_right=True),
    )


@case("transposed_before")
def transposed_left(n: Net) -> Module:
    return n.done(n.matmul(n.input(4, 3), n.w(4, 5), transpose_left=True))


@case("transposed_before", "equal_batches", "bias_after")
def products_of_activations(n: Net) -> Module:
    x, y = n.input(2, 3, 4, 5), n.input(2, 1, 6, 5, name="b")
    third = n.matmul(n.relu(n.input(1, 5, 4, name="c")), n.relu(n.input(1, 4, 6, name="d")), n.w(6))
    return n.done(n.matmul(x, y, transpose_right=True), third)


@case("constant_batches")
def matrices_per_batch(n: Net) -> Module:
    return n.done(n.matmul(n.input(1, 3, 4, 5), n.w(2, 3, 5, 6)))


# -- interpolation -----------------------------------------------------------------------------------------------------
@case("product_per_axis")
def interpolated(n: Net) -> Module:
    x = n.input(1, 2, 5, 6)
    twice = {"sizes": (1, 2, 10, 12), "scales": (1.0, 1.0, 2.0, 2.0)}
    return n.done(
        n.resize(x, mode="linear", **twice),
        n.resize(x, mode="linear", coordinates="align_corners", sizes=(1, 2, 7, 6), scales=(1.0, 1.0, 1.4, 1.0)),
        n.resize(x, mode="cubic", sizes=(1, 2, 5, 3), scales=(1.0, 1.0, 1.0, 0.5)),
    )


@case("slices_joined")
def constant_indices(n: Net) -> Module:
    x = n.input(1, 8, 5)
    indices = n.constant(np.array([[0, 2, 4], [7, 6, -3]]), "int64")
    return n.done(n.gather(x, indices, axis=1), n.gather(x, n.constant(np.array(3), "int64"), axis=2))


@case("nearest_by_slices")
def nearest_bytes(n: Net) -> Module:
    x = n.input(1, 3, 6, 9, dtype="u8")
    coarse = {"mode": "nearest", "rounding": "round_prefer_ceil"}
    return n.done(n.resize(x, sizes=(1, 3, 2, 6), scales=(1, 1, 1 / 3, 2 / 3), **coarse))


# -- activation --------------------------------------------------------------------------------------------------------
@case("activation_after")
def activations_inside(n: Net) -> Module:
    x = n.conv(n.input(1, 3, 8, 8), n.w(4, 3, 3, 3), strides=(2, 2), activation="relu")
    y = n.deconv(x, n.w(4, 2, 2, 2), activation="relu6")
    return n.done(n.add(x, x, activation="relu"), n.matmul(y, n.w(4, 3), activation="relu"))


# -- layout ------------------------------------------------------------------------------------------------------------
@case("border_pieces")
def mirrored_borders(n: Net) -> Module:
    x = n.input(1, 2, 4, 5)
    pads = (0, 0, 0, 0, 2, 1, 0, 3)
    return n.done(*(n.pad(x, pads=pads, mode=mode) for mode in ("reflect", "edge", "symmetric")))


@pytest.mark.parametrize("key", sorted(CASES), ids="/".join)
def test_rule_gives_the_reviewed_text(key: tuple[str, str], golden: Callable[[Path, str], None]) -> None:
    _, name = key
    module = CASES[key](Net())
    inputs, before = random_inputs(module), str(module)
    want = run_module(module, inputs)
    ctx = PassContext(target=find_target("bm1880"))
    assert run_pipeline(module, ALL, ctx, verify_each=True)
    assert_close(run_module(module, inputs), want)
    text = str(module)
    assert not run_pipeline(module, ALL, ctx) and str(module) == text
    golden(GOLDEN / f"{name}.mlir", f"// before\n{before}\n// after legalize\n{text}")


@pytest.mark.parametrize("key", sorted(CASES), ids="/".join)
def test_nothing_stays_on_the_cpu(key: tuple[str, str]) -> None:
    """All int8, within a few steps of the float net, and the chip computes what the interpreter does."""
    module, float_module = CASES[key](Net()), CASES[key](Net())
    data = samples(module, 4)
    target = find_target("bm1880")
    run_pipeline(module, ALL, PassContext(target=target))
    quantize(module, target=target, data=data)
    left = {op.label: op.attributes["place.cpu"] for op in module.main.ops if "place.cpu" in op.attributes}
    assert not left
    one = {n: data[n][: v.shape[0]] for n, v in zip(module.main.input_names, module.main.arguments)}
    fed = feed(module, one)
    exact, found = run_module(module, fed), Session(target.compile([module], 2).model).run(fed, raw=True)
    assert all(found[name].tobytes() == array.tobytes() for name, array in exact.items())
    want, got = run_module(float_module, one), real_outputs(module, one)
    for name, array in want.items():
        span = np.abs(array).max()
        assert np.abs(got[name] - array).max() <= 0.06 * span, name


def test_norms_and_softmax_stay_whole_by_default_and_say_why() -> None:
    n = Net()
    x = n.input(2, 3, 16)
    module = n.done(n.softmax(n.layer_norm(x, n.w(16), n.w(16), axis=2), axis=2))
    data = samples(module, 4)
    run_pipeline(module, "legalize", PassContext(target=find_target("bm1880")))
    quantize(module, target=find_target("bm1880"), data=data)
    reasons = {op.short_name: op.attributes["place.cpu"] for op in module.main.ops if "place.cpu" in op.attributes}
    assert all(f"eight bits lose too much of '{name}'" in reasons[name] for name in ("layer_norm", "softmax"))


def test_rules_that_lead_back_to_the_same_op_end() -> None:
    """A constant map times a factor per row: the rule for rows makes the same product again."""
    n = Net()
    module = n.done(n.mul(n.w(2, 4, 8, 8), n.input(2, 4, 8, 1)))
    inputs = random_inputs(module)
    want = run_module(module, inputs)
    run_pipeline(module, "legalize", PassContext(target=find_target("bm1880")), verify_each=True)
    assert_close(run_module(module, inputs), want)


ON_OTHER_CHIPS = {
    "best_boxes_of_each_class",
    "bytes_summed_in_float",
    "leading_ones_by_counting",
    "one_maximum_after_the_other",
    "places_by_counting",
    "ranked_along_the_last_axis",
    "suppressed_class_by_class",
    "sum_with_negative",
    "reduced_in_pieces",
    "normed_by_pieces",
    "scaled_by_pieces",
    "last_axes_normed_by_pieces",
    "inputs_before_steps",
    "inputs_value_by_value",
    "in_parts",
    "step_by_step",
    "compared_with_places",
    "chosen_along_axis",
    "elements_of_a_table",
    "chosen_rows",
    "diagonals_then_sums",
    "neighbours_by_index",
    "neighbours_in_planes",
    "product_with_neighbours",
    "product_with_waves",
    "place_of_the_largest",
    "replaced_zeros",
    "rows_and_columns_weighed",
    "updates_met_along_axis",
    "updates_met_by_rows",
    "written_out",
}
"""Rules for ops that the BM1880 runs itself, or not at all: tests/dv/test_dv_kernels.py, test_large_reductions.py,
lanes/test_recurrence.py, lanes/test_detections.py, lanes/test_one_hot.py, lanes/test_decomposed.py,
frontends/onnx/test_onnx_suppression.py, bmlang/test_bmlang_bm1684x.py."""


def test_every_rule_has_a_case() -> None:
    named = {rule for rule, _ in CASES} | ON_OTHER_CHIPS
    assert {rule.__name__ for rules in DECOMPOSITIONS.values() for rule in rules} <= named


def test_nothing_changes_without_a_target_and_where_the_target_is_content() -> None:
    def net(n: Net) -> Module:
        x = n.conv(n.input(1, 3, 8, 8), n.w(4, 3, 3, 3), pads=(1, 1, 1, 1))
        return n.done(n.avg_pool(n.relu(x), kernel=(8, 8)))

    module = net(Net())
    assert not run_pipeline(module, "legalize", PassContext(target=find_target("bm1880")))
    module = CASES["spread", "spatial-attention"](Net())
    assert not run_pipeline(module, "legalize")
