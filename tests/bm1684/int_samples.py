"""Random attributes of integer sums of products, shared by the tests of convolutions and matrix products."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from bm1684_nets import Net
from hypothesis import strategies as st

from bmcompiler.ir import TensorType, Value

BYTES = st.sampled_from(["i8", "u8"])
NARROW = st.sampled_from(["i8", "u8", "i16", "u16"])
SCALES = st.one_of(
    st.floats(2.0**-14, 1.0, width=32),
    st.floats(2.0**-8, 300.0, width=32),
    st.integers(-13, 2).map(lambda e: 2.0**e),
    st.sampled_from([2.0**-31, 1000.0, 2.0**23]),
)


class Sums(NamedTuple):
    """Types and mode of an op; `bias` is "" for none."""

    data: str
    weight: str
    bias: str
    result: str
    modes: dict[str, Any]

    def constant_bias(self, net: Net, channels: int) -> Value | None:
        if self.bias == "f32":
            return net.b.weight((net.rng.standard_normal(channels) * 1000).astype(np.float32), "w")
        if self.bias == "i32":
            return net.b.weight(net.rng.integers(-100000, 100001, channels).astype(np.int32), "w")
        return net.integers(self.bias, channels) if self.bias else None

    def factors(self, net: Net, channels: int) -> Value | None:
        """Shifts of channels."""
        if self.modes.get("mode") != "channel":
            return None
        return net.b.weight(net.rng.integers(0, 16, (channels, 1)).astype(np.int16), "w")

    def out(self, shape: tuple[int, ...]) -> TensorType:
        return TensorType(shape, self.result)


@st.composite
def sums(draw: st.DrawFn, modes: tuple[str, ...] = ("", "low", "high", "asymmetric", "channel")) -> Sums:
    """Every legal combination of element types, mode, scale and zero points."""
    mode = draw(st.sampled_from(modes))
    data, weight = draw(BYTES), draw(BYTES)
    result = draw(BYTES if mode == "low" else NARROW)
    biases = ["", "i16", "u16", *(["i32", "f32"] if mode in ("high", "asymmetric") else [])]
    if mode == "channel":
        result, biases = draw(BYTES), ["i16"]
    attributes: dict[str, Any] = {"activation": draw(st.sampled_from(["", "relu"]))}
    if not mode:
        attributes["rshift"] = draw(st.integers(0, 18))
    elif mode == "channel":
        attributes |= {"mode": mode, "narrow": True, "rshift": draw(st.integers(0, 12))}
    else:
        attributes |= {"mode": mode, "scale": draw(SCALES)}
    if mode == "asymmetric":
        kinds = (np.iinfo(TensorType((), dtype).numpy) for dtype in (data, weight, result))
        points = (st.one_of(st.just(0), st.integers(int(k.min), int(k.max))) for k in kinds)
        attributes["zero_points"] = draw(st.tuples(*points))
    return Sums(data, weight, draw(st.sampled_from(biases)), result, attributes)
