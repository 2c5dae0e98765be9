"""The pass equalize: the float net stays, channels become alike, and int8 gains by it on both schemes."""

from __future__ import annotations

import numpy as np
import pytest
from nets import Net, assert_close

from bmcompiler.interpreter import run_function, run_module
from bmcompiler.ir import Module
from bmcompiler.numeric import arith
from bmcompiler.passes.precision import equalize
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.quant.table import CalibrationTable

DATA = {"data": np.random.default_rng(5).normal(0, 1, (16, 3, 8, 8)).astype(np.float32)}


def spread(kind: str = "relu") -> Module:
    """A depthwise net whose channels range over 2**8; channel 0 is never above 0, and has huge weights behind it."""
    n = Net(3)
    ranges = 2.0 ** np.linspace(-4, 4, 16)
    first = n.random.normal(0, 0.3, (16, 3, 3, 3)) * ranges.reshape(-1, 1, 1, 1)
    bias = n.random.normal(0, 0.1, 16) * ranges
    first[0], bias[0] = 0.01 * first[0], -1.0
    depthwise = n.random.normal(0, 0.5, (16, 1, 3, 3))
    depthwise[0] *= 200
    x = n.conv(n.input(1, 3, 8, 8), n.constant(first), n.constant(bias))
    x = n.relu(x) if kind == "relu" else n.prelu(x, n.w(16, low=0.1, high=0.3), axis=1)
    x = n.relu(n.conv(x, n.constant(depthwise), n.w(16), group=16))
    last = n.random.normal(0, 0.5, (8, 16, 1, 1)) / ranges.reshape(1, -1, 1, 1)
    y = n.relu(n.conv(x, n.constant(last), n.w(8)))
    z = n.add(y, n.relu(n.conv(y, n.w(8, 8, 1, 1))))
    return n.done(n.matmul(n.reshape(n.avg_pool(z, kernel=(4, 4)), shape=(1, 8)), n.w(8, 5)))


def outputs(module: Module) -> np.ndarray:
    found = []
    for k in range(16):
        x, (argument,), (result,) = DATA["data"][k : k + 1], module.main.arguments, module.main.returned
        fed = x if argument.type.quant is None else arith.quantize_real(x, argument.type.quant.threshold)
        out = run_module(module, {"data": fed})["out0"]
        found.append(out if result.type.quant is None else out * result.type.quant.scale)
    return np.concatenate(found)


@pytest.mark.parametrize("kind", ["relu", "prelu"])
def test_the_float_net_computes_the_same(kind: str) -> None:
    module = spread(kind)
    before = {"out0": outputs(module)}
    assert run_pipeline(module, "equalize", PassContext(data=DATA), verify_each=True)
    assert_close({"out0": outputs(module)}, before)


@pytest.mark.parametrize("scheme", ["shift", "scale"])
def test_channels_of_any_range_and_dead_ones_survive_8_bits(scheme: str) -> None:
    errors = {}
    want = outputs(spread())
    for first in ("", "equalize,"):
        module = spread()
        run_pipeline(
            module,
            f"{first}calibrate{{method=max}},quantize{{scheme={scheme},mode=low}},dead-code",
            PassContext(data=DATA),
        )
        errors[first] = float(np.linalg.norm(outputs(module) - want) / np.linalg.norm(want))
    assert errors["equalize,"] < 0.06 and errors[""] > 0.2


def test_factors_of_a_normalisation_move_into_the_layers_that_read_it() -> None:
    """Channels that a norm makes much larger than others (outliers of transformers) are like them behind the pass."""

    def peaks(module: Module) -> np.ndarray:
        seen: list[np.ndarray] = []
        norm = next(op for op in module.main.ops if op.short_name == "layer_norm")
        for k in range(8):
            fed = {"data": DATA["data"][k : k + 1]}
            run_function(module, module.main, fed, lambda v, a: seen.append(a) if v is norm.results[0] else None)
        return np.abs(np.concatenate(seen)).max(axis=0)

    n = Net(3)
    rows = n.reshape(n.input(1, 3, 8, 8), shape=(12, 16))
    gains = np.where(np.arange(16) % 5 == 0, 12.0, 1.0)
    normed = n.layer_norm(rows, n.constant(gains), n.w(16), axis=1)
    again = n.reshape(normed, shape=(4, 3, 16))
    module = n.done(n.add(n.matmul(normed, n.w(16, 8)), n.reshape(n.matmul(again, n.w(16, 8)), shape=(12, 8))))
    before, spread_before = {"out0": outputs(module)}, np.ptp(np.log2(peaks(module)))
    assert run_pipeline(module, "equalize", PassContext(data=DATA), verify_each=True)
    assert_close({"out0": outputs(module)}, before)
    assert np.ptp(np.log2(peaks(module))) < 0.75 * spread_before


def test_weights_that_meet_zeros_alone_are_cut_to_the_range_of_the_others() -> None:
    largest = {}
    for dead in ("true", "false"):
        module = spread()
        run_pipeline(module, f"equalize{{dead={dead}}}", PassContext(data=DATA))
        depthwise = next(op for op in module.main.ops if op.attributes.get("group") == 16)
        weight = module.weights[depthwise.operands[1].op.attributes["key"]]  # type: ignore[union-attr]
        largest[dead] = float(np.abs(weight).max())
    assert largest["true"] < 5 and largest["false"] > 50


def test_a_calibration_table_speaks_of_the_net_as_it_is() -> None:
    module = spread()
    assert not run_pipeline(module, "equalize", PassContext(data=DATA, table=CalibrationTable.of({"x": 1.0})))
    assert not run_pipeline(module, "equalize", PassContext())


def test_outputs_and_what_only_one_layer_knows_keep_their_scale() -> None:
    """No factor crosses a function that is not homogeneous, or the end of the net."""
    n = Net(3)
    x = n.conv(n.input(1, 3, 8, 8), n.w(4, 3, 3, 3), n.w(4))
    module = n.done(x, n.conv(n.sigmoid(x), n.w(2, 4, 1, 1)))
    assert not run_pipeline(module, "equalize", PassContext(data=DATA))


def test_channels_that_a_pad_adds_have_no_factor() -> None:
    n = Net(3)
    x = n.relu(n.conv(n.input(1, 3, 8, 8), n.w(4, 3, 3, 3), n.w(4)))
    x = n.pad(x, pads=(0, 0, 2, 0, 0, 0, 0, 0))
    module = n.done(n.relu(n.conv(x, n.w(5, 6, 1, 1), n.w(5))))
    want = run_module(module, {"data": DATA["data"][:1]})
    run_pipeline(module, "equalize", PassContext(data=DATA), verify_each=True)
    assert_close(run_module(module, {"data": DATA["data"][:1]}), want)


def test_a_net_whose_channels_meet_functions_of_their_size_alone_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """No channel behind a sigmoid can be scaled in the layer before it, whatever samples say of it."""
    runs: list[str] = []
    monkeypatch.setattr(equalize, "run_function", lambda *_: runs.append("run"))
    n = Net(3)
    x = n.sigmoid(n.conv(n.input(1, 3, 8, 8), n.w(4, 3, 3, 3), n.w(4)))
    module = n.done(n.sigmoid(n.conv(x, n.w(4, 4, 1, 1), n.w(4))))
    assert not run_pipeline(module, "equalize", PassContext(data=DATA)) and not runs
    run_pipeline(spread(), "equalize", PassContext(data=DATA))
    assert len(runs) == len(DATA["data"])
