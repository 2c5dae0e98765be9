"""Every op in every float type that a kernel takes: the chip computes what `evaluate` says, and no kernel fails."""

from __future__ import annotations

import numpy as np
import pytest
from op_samples import SAMPLES, random_array

from bmcompiler.errors import BMError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session
from bmcompiler.target import find_target, unsupported_reason

FLOATS = ("f32", "f16", "bf16")
BORDERLESS = ("bf16", "bool")


def _typed(name: str, dtype: str) -> Module | None:
    """The sample of an op with its f32 operands in another type; None where the op has no such form.

    What no model file holds, bf16 and bool, is f32 at the border.
    """
    types, make = SAMPLES[name]
    builder = Builder.new("net")

    def given(i: int, type: TensorType) -> Value:
        wanted = type.with_dtype(dtype) if type.dtype == "f32" else type
        if wanted.dtype not in BORDERLESS:
            return builder.input(f"x{i}", wanted)
        return builder.cast(builder.input(f"x{i}", wanted.with_dtype("f32")), to=wanted.dtype)

    try:
        made = make(builder, *(given(i, type) for i, type in enumerate(types)))
        values = made if isinstance(made, tuple) else (made,)
        ends = [builder.cast(value, to="f32") if value.dtype in BORDERLESS else value for value in values]
        module = builder.outputs(ends, [f"y{i}" for i in range(len(ends))])
        verify_module(module)
    except BMError:
        return None
    return module


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_what_a_kernel_takes_it_computes(name: str, dtype: str, chip: str) -> None:
    module, target = _typed(name, dtype), find_target(chip)
    if module is None:
        return
    if any(unsupported_reason(target, op) is not None for op in module.main.ops if op.name.startswith("tensorop.")):
        return
    rng = np.random.default_rng(5)
    inputs = {key: random_array(rng, value.type) for key, value in zip(module.main.input_names, module.main.arguments)}
    found = Session(target.compile([module], 0).model).run(inputs, raw=True)
    wanted = run_module(module, inputs, target=target)
    for key, array in wanted.items():
        assert np.ascontiguousarray(found[key]).tobytes() == np.ascontiguousarray(array).tobytes(), key
