"""Integer nets that differ in a layer compute what is before it once, with the results of who remembers nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bmcompiler.ir import Module, Operation, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.precision.calibrate import float_values, set_thresholds
from bmcompiler.passes.quantization.choice import remembered
from bmcompiler.passes.quantization.choice.reference import Reference
from bmcompiler.passes.quantization.nets import Nets
from bmcompiler.passes.quantization.scheme import real_scales

_LAYERS = 4


def chain() -> Module:
    """Convolutions in a row, calibrated."""
    b, random = Builder.new("chain"), np.random.default_rng(0)
    x = b.input("data", TensorType((1, 4, 6, 6)))
    for number in range(_LAYERS):
        with b.at(f"conv{number}"):
            weight = random.normal(0, 0.4, (4, 4, 3, 3)).astype(np.float32)
            x = b.conv(x, b.weight(weight, f"w{number}"), pads=(1, 1, 1, 1))
    module = b.outputs([x], ["out"])
    set_thresholds(module.main, [4.0 for _ in float_values(module.main)])
    return module


@pytest.mark.parametrize(("scheme", "modes"), [("scale", ("low", "high")), ("shift", ("int8", "double"))])
def test_what_is_before_a_layer_of_another_mode_is_computed_once(
    scheme: str, modes: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, steps = chain(), [{"data": np.random.default_rng(k).normal(size=(1, 4, 6, 6)).astype("f")} for k in (1, 2)]
    nets, computed = Nets(module, module.main, None, real_scales(scheme), strict=False), list[Operation]()
    evaluate_op = remembered.evaluate_op

    def counted(op: Operation, arrays: list[Any]) -> tuple[Any, ...]:
        computed.append(op)
        return evaluate_op(op, arrays)

    monkeypatch.setattr(remembered, "evaluate_op", counted)
    layers = [op for op in module.main.ops if op.short_name == "conv"]
    lows = [nets.nearest({**dict.fromkeys(layers, modes[0]), layers[-1]: mode}, {})[0] for mode in modes]
    reference = Reference(module, module.main, steps)
    first = reference.measured(lows[0], [0, 1])
    before = sum(op.short_name == "conv" for op in computed)
    second = reference.measured(lows[1], [0, 1])
    assert before == 2 * _LAYERS
    assert sum(op.short_name == "conv" for op in computed) == before + 2
    for low, found in zip(lows, (first, second)):
        alone = Reference(module, module.main, steps).measured(low, [0, 1])
        np.testing.assert_array_equal(found.energies, alone.energies)
    assert first.worst != second.worst


def test_what_was_asked_for_longest_ago_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    module, step = chain(), {"data": np.ones((1, 4, 6, 6), np.float32)}
    low, _ = Nets(module, module.main, None, real_scales("scale"), strict=False).nearest(
        dict.fromkeys(module.main.ops, "low"), {}
    )
    monkeypatch.setattr(remembered, "_BYTES", 2 * 4 * 36 * 4)
    reference = Reference(module, module.main, [step])
    reference.measured(low, [0])
    kept = reference.remembered._kept
    assert 0 < sum(map(remembered._size, kept.values())) <= remembered._BYTES
    reference.remembered.forget()
    assert not kept
