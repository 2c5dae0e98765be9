"""What the operators beside the vendor's 108 mean; the batched product stands with the other one (`matrix`)."""

from __future__ import annotations

from bmcompiler.frontends.bmlang.emit import Emit
from bmcompiler.frontends.bmlang.fields import shown
from bmcompiler.frontends.bmlang.meanings.arrange import axis_of
from bmcompiler.frontends.bmlang.meanings.registry import Call, meaning
from bmcompiler.frontends.bmlang.types import ResizeMode
from bmcompiler.ir import Value

_CUBIC = -0.75
"""Of Keys' kernel, as PyTorch and OpenCV have it."""


@meaning("softmax")
def softmax(e: Emit, c: Call) -> Value:
    """In float32, rounded once."""
    x = c["tensor_i"]
    axis = axis_of(c, "axis", c["axis"], x.type.rank)
    return e.cast(e.op("softmax", e.cast(x, "f32"), axis=axis), c.out)


@meaning("layer_norm")
def layer_norm(e: Emit, c: Call) -> Value:
    """[x, gamma, beta]; the last two have the sizes of the axes that the statistics go over."""
    x, *factors = c["tensor_i"]
    axis = axis_of(c, "axis", c["param"].axis, x.type.rank)
    if not c["param"].epsilon >= 0:
        raise c.wrong(f"epsilon must be 0 or more, got {c['param'].epsilon:g}")
    for name, value in zip(("gamma", "beta"), factors):
        if value.shape != x.shape[axis:]:
            raise c.wrong(f"{name} must have shape {list(x.shape[axis:])}, got {list(value.shape)}")
    return e.op("layer_norm", x, *factors, axis=axis, epsilon=c["param"].epsilon)


@meaning("resize")
def resize(e: Emit, c: Call) -> Value:
    """The last axes, as many as `size` has numbers."""
    x, size, p = c["tensor_i"], c["size"], c["param"]
    before = x.type.rank - len(size)
    if not size or before < 0 or min(size, default=0) < 1:
        raise c.wrong(
            f"size needs one number from 1 on for each of the last axes of {list(x.shape)}, got {shown(size)}"
        )
    if not x.type.size:
        raise c.wrong(f"tensor_i has no elements: {list(x.shape)}")
    have, want = x.shape[before:], tuple(size)
    if p.mode == ResizeMode.NEAREST:
        if p.align_corners:
            raise c.wrong("align_corners is for LINEAR and CUBIC")
        return _nearest(e, x, want)
    scales = (1.0,) * before + tuple(b / a for a, b in zip(have, want))
    real = e.op(
        "resize",
        e.cast(x, "f32"),
        sizes=x.shape[:before] + want,
        scales=scales,
        mode=p.mode.name.lower(),
        coordinates="align_corners" if p.align_corners else "half_pixel",
        cubic_a=_CUBIC,
    )
    return e.cast(real, c.out)


def _nearest(e: Emit, x: Value, want: tuple[int, ...]) -> Value:
    """Repeated pixels where that is all."""
    before = x.type.rank - len(want)
    have = x.shape[before:]
    if x.type.rank == 4 and len(want) <= 2 and all(b % a == 0 for a, b in zip(have, want)):
        factors = (1,) * (2 - len(want)) + tuple(b // a for a, b in zip(have, want))
        return e.op("upsample", x, scale=factors)
    scales = (1.0,) * before + tuple(b / a for a, b in zip(have, want))
    sizes = x.shape[:before] + want
    return e.op("resize", x, sizes=sizes, scales=scales, coordinates="asymmetric", rounding="floor")
