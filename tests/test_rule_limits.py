"""Rules of kernels with a number hold up to it: an op at the limit is taken, the next one is refused in their words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from lane_nets import Net

from bmcompiler.ir import Quant, TensorType, Value
from bmcompiler.target import find_target, unsupported_reason

F32, I8 = "f32", "i8"
LANES = ("bm1684", "bm1684x")
OLD = ("bm1880",)


def x(net: Net, *shape: int, dtype: str = I8, name: str = "x") -> Value:
    """An input."""
    return net.b.input(name, TensorType(shape, dtype, Quant(1 / 64) if dtype in (I8, "u8") else None))


def constant(net: Net, dtype: str, *shape: int) -> Value:
    return net.f32(*shape) if dtype == F32 else net.integers(dtype, *shape)


def conv(
    net: Net, dtype: str = I8, kernel: tuple[int, int] = (3, 3), size: tuple[int, int] = (40, 40), **more: Any
) -> Value:
    channels = more.get("group", 2)
    weight = constant(net, dtype, channels, 1 if "group" in more else 4, *kernel)
    fixed = {} if dtype == F32 else {"rshift": 9}
    return net.b.conv(x(net, 1, 4, *size, dtype=dtype), weight, **{**fixed, **more})


def avg_pool(net: Net, **given: Any) -> Value:
    return net.b.avg_pool(x(net, 1, 4, 40, 40), **{"kernel": (3, 3), "multiplier": 3, "rshift": 4, **given})


def max_pool(net: Net, size: tuple[int, int] = (40, 40), **given: Any) -> Value:
    return net.b.max_pool(x(net, 1, 4, *size), **{"kernel": (3, 3), **given})


def product(net: Net, dtype: str, depth: int, rshift: int = 9) -> Value:
    more = {} if dtype == F32 else {"rshift": rshift}
    return net.b.matmul(x(net, 2, depth, dtype=dtype), constant(net, dtype, depth, 9), **more)


def lrn(net: Net, **given: Any) -> Value:
    return net.b.lrn(x(net, 1, 40, 3, 3, dtype=F32), **{"size": 3, "alpha": 0.1, "beta": 0.75, "k": 1.0, **given})


def float_depth(net: Net, depth: int) -> Value:
    return net.b.conv(x(net, 1, depth, 2, 2, dtype=F32), net.f32(2, depth, 1, 1))


def deconv(net: Net, dtype: str, pads: tuple[int, ...]) -> Value:
    fixed = {} if dtype == F32 else {"rshift": 9}
    return net.b.deconv(x(net, 1, 4, 9, 9, dtype=dtype), constant(net, dtype, 4, 4, 3, 3), pads=pads, **fixed)


def places(net: Net, count: int) -> Value:
    """Of so many rows, no two of which lie together."""
    return net.b.weight(np.arange(0, 2 * count, 2, np.int32) % 1999, "places")


def bytes_of(net: Net, op: str, count: int = 1, **given: Any) -> Value:
    return getattr(net.b, op)(*(x(net, 1, 4, 5, 6, name=f"x{i}") for i in range(count)), **given)


class Limit(NamedTuple):
    """`make` of a net and a value, values that are taken, and such that are refused with `words`.

    Of values that this rule takes, `held` are refused by another one.
    """

    chips: Sequence[str]
    words: str
    make: Callable[[Net, Any], Any]
    taken: Sequence[Any]
    refused: Sequence[Any]
    held: Sequence[Any] = ()


CROPPED = [(3, 0, 0, 0), (0, 0, 3, 0)]
PAIRS = [(15, 1), (1, 15)], [(16, 1), (1, 16)]
LIMITS = {
    "conv strides": Limit(OLD, "Strides must be", lambda n, v: conv(n, strides=v), *PAIRS),
    "conv dilations": Limit(
        OLD, "Dilations must be", lambda n, v: conv(n, dilations=v), [(16, 1), (1, 16)], [(17, 1), (1, 17)]
    ),
    "conv pads": Limit(
        OLD,
        "15 zeros",
        lambda n, v: conv(n, kernel=(17, 17), pads=v),
        [(15, 0, 0, 0), (0, 0, 0, 15)],
        [(16, 0, 0, 0), (0, 16, 0, 0), (0, 0, 16, 0), (0, 0, 0, 16)],
    ),
    "conv depth": Limit(
        OLD,
        "at most 4095",
        lambda n, v: n.b.conv(x(n, 1, v, 2, 2), n.integers(I8, 2, v, 1, 1), rshift=9),
        [4095],
        [4096],
    ),
    "conv window": Limit(OLD, "1024 taps", lambda n, v: conv(n, kernel=(1, v), size=(2, 1100)), [1024], [1025]),
    "pool strides": Limit(OLD, "Strides must be", lambda n, v: max_pool(n, strides=v), *PAIRS),
    "pool window": Limit(
        OLD, "255 per axis", lambda n, v: max_pool(n, kernel=v, size=(300, 2)), [(255, 1), (1, 2)], [(256, 1), (1, 1)]
    ),
    "pool columns": Limit(
        OLD, "255 per axis", lambda n, v: max_pool(n, kernel=v, size=(2, 300)), [(1, 255)], [(1, 256)]
    ),
    "pool pads": Limit(
        OLD,
        "15 elements",
        lambda n, v: max_pool(n, kernel=(17, 17), pads=v),
        [(15, 0, 0, 0)],
        [(16, 0, 0, 0), (0, 16, 0, 0), (0, 0, 16, 0), (0, 0, 0, 16)],
    ),
    "pool multiplier": Limit(
        ("bm1880", "bm1684x"), "multiplier must be", lambda n, v: avg_pool(n, multiplier=v), [0, 255], [-1, 256]
    ),
    "pool factor": Limit(
        ("bm1684",), "multiplier must be", lambda n, v: avg_pool(n, multiplier=v), [-128, 255], [-129, 256]
    ),
    "muls multiplier": Limit(
        OLD,
        "multiplier must be",
        lambda n, v: bytes_of(n, "muls_shift", multiplier=v, rshift=3),
        [-128, 255],
        [-129, 256],
    ),
    "mac multipliers": Limit(
        OLD,
        "Multipliers must be",
        lambda n, v: bytes_of(n, "mac_shift", 2, multipliers=v, rshift=3),
        [(-128, 127), (127, -128)],
        [(3, 128), (-129, 3)],
    ),
    "mac multiplier": Limit(
        OLD,
        "Multipliers must be",
        lambda n, v: bytes_of(n, "mac_shift", multipliers=(v,), rshift=3),
        [-128, 255],
        [-129, 256],
    ),
    "mac shift": Limit(
        OLD, "right shift", lambda n, v: bytes_of(n, "mac_shift", 2, multipliers=(3, 5), rshift=v), [0, 15], [16]
    ),
    "constant part": Limit(
        OLD, "at most 256 runs", lambda n, v: n.b.concat(x(n, v, 3), n.integers(I8, v, 2), axis=1), [256], [257]
    ),
    "backward": Limit(
        OLD,
        "At most 256 elements",
        lambda n, v: n.b.slice(x(n, 2, v), starts=(0, v - 1), ends=(2, -1), steps=(1, -1)),
        [256],
        [257],
    ),
    "lrn": Limit(
        LANES,
        "k must be positive",
        lambda n, v: lrn(n, **v),
        [{"k": 1e-30}, {"alpha": 0.0}],
        [{"k": 0.0}, {"alpha": -1e-30}],
    ),
    "lrn window": Limit(LANES, "at most 15 channels", lambda n, v: lrn(n, size=v), [31], [33]),
    "cumulate": Limit(
        LANES, "at most 1024", lambda n, v: n.b.cumulate(x(n, 2, v, dtype=F32), axis=1, method="sum"), [1024], [1025]
    ),
    "reduced": Limit(
        LANES,
        "elements may be reduced",
        lambda n, v: n.b.reduce(x(n, 2, v, dtype=F32), axes=(1,), method="prod"),
        [4095],
        [65536],
        [65535],
    ),
    "trilu": Limit(LANES, "Matrices must have at most", lambda n, v: n.b.trilu(x(n, v, 3, dtype=F32)), [511], [512]),
    "sums of a pool": Limit(
        ("bm1684x",),
        "sums must fit",
        lambda n, v: n.b.avg_pool(x(n, 1, 1, 7, 17000, dtype="u8"), kernel=v, multiplier=1),
        [(5, 6605)],
        [(2, 16513)],
    ),
    "exact means": Limit(
        ("bm1684",),
        "at most 65793",
        lambda n, v: n.b.avg_pool(x(n, 1, 1, 3, 40000, dtype="u8"), kernel=v, scale=1e-5),
        [(3, 21931)],
        [(2, 32897)],
    ),
    "sums of a shifted pool": Limit(
        ("bm1684",),
        "sums must fit",
        lambda n, v: n.b.avg_pool(x(n, 1, 1, 512, 256), kernel=(512, v), multiplier=128),
        [2],
        [256],
        [255],
    ),
    "depth of floats": Limit(("bm1684",), "input channels", float_depth, [4095], [4096]),
    "depth of more floats": Limit(("bm1684x",), "input channels", float_depth, [4096], [65536], [65535]),
    "window of floats": Limit(
        LANES,
        "rows and columns large",
        lambda n, v: n.b.max_pool(x(n, 1, 1, 1, 65600, dtype=F32), kernel=(1, v)),
        [4095],
        [65536],
        [65535],
    ),
    "lane dilations": Limit(
        LANES,
        "Dilations must be",
        lambda n, v: conv(n, F32, dilations=v, size=(64, 64)),
        [(16, 1), (1, 16)],
        [(17, 1), (1, 17)],
    ),
    "turned floats": Limit(
        LANES,
        "Transposed operands",
        lambda n, v: n.b.matmul(x(n, 2, 9, dtype=F32), n.f32(v, 9), transpose_right=True),
        [65535],
        [65536],
    ),
    "pads of a deconv": Limit(LANES, "Each pad must", lambda n, v: deconv(n, F32, v), [(2, 2, 2, 2)], CROPPED),
    "pads of an int8 deconv": Limit(OLD, "Each pad must", lambda n, v: deconv(n, I8, v), [(2, 2, 2, 2)], CROPPED),
    "float axes": Limit(
        LANES,
        "four axes",
        lambda n, v: n.b.add(
            x(n, *v, dtype=F32), x(n, *(s if i % 2 else 1 for i, s in enumerate(v)), dtype=F32, name="y")
        ),
        [(2, 3, 4, 5)],
        [(2, 3, 4, 5, 6)],
    ),
    "ranks": Limit(
        ("dv700",),
        "2 dimensions or more",
        lambda n, v: n.b.add(x(n, *v, dtype=F32), x(n, *v, dtype=F32, name="y")),
        [(2, 3)],
        [(3,)],
    ),
    "means of halves": Limit(
        ("bm1684x",),
        "at most 16 elements",
        lambda n, v: n.b.avg_pool(x(n, 1, 4, 40, 40, dtype="f16"), kernel=v),
        [(4, 4)],
        [(1, 17)],
    ),
    "picked": Limit(
        ("bm1684",),
        "at most 512",
        lambda n, v: n.b.gather(x(n, 1999, 3, dtype=F32), places(n, v), axis=0),
        [512],
        [513],
    ),
    "turned left": Limit(
        ("bm1684",),
        "at most 4095 columns",
        lambda n, v: n.b.matmul(x(n, 3, v), x(n, 3, 5, name="y"), transpose_left=True, rshift=9),
        [4095],
        [4096],
    ),
    "broadcast axes": Limit(
        ("bm1684",),
        "four axes",
        lambda n, v: n.b.add_shift(x(n, *v), x(n, *(s if i % 2 else 1 for i, s in enumerate(v)), name="y"), rshift=1),
        [(2, 3, 4), (2, 3, 4, 5)],
        [(2, 3, 4, 5, 6)],
    ),
    "depth of bytes": Limit(
        ("bm1684",),
        "depth of the product",
        lambda n, v: n.b.matmul(x(n, 3, v), x(n, v, 5, name="y"), rshift=9),
        [4095, 4096, 4095 * 3],
        [4099],
    ),
    "maps": Limit(
        ("dv700",),
        "Maps have at most",
        lambda n, v: n.b.relu(x(n, 1, *v, dtype=F32)),
        [(1, 8, 2047), (1, 1024, 8), (32768, 2, 2)],
        [(1, 8, 2048), (1, 1025, 8), (32769, 2, 2)],
    ),
    "fc": Limit(("dv700",), "Rows and results", lambda n, v: product(n, F32, v), [32768], [32769]),
    "fc results": Limit(
        ("dv700",), "Rows and results", lambda n, v: n.b.matmul(x(n, 1, 8, dtype=F32), n.f32(8, v)), [32768], [32769]
    ),
    "depthwise": Limit(("dv700",), "at most 7", lambda n, v: conv(n, F32, v, group=4), [(7, 7)], [(9, 9)]),
    "upsampled": Limit(
        ("dv700",),
        "same power of two",
        lambda n, v: n.b.upsample(x(n, 1, 4, 5, 6, dtype=F32), scale=v),
        [(2, 2), (4, 4)],
        [(1, 1), (3, 3), (2, 4)],
    ),
    "groups of a deconv": Limit(
        ("dv700",),
        "Groups must be single channels",
        lambda n, v: n.b.deconv(x(n, 1, 4, 9, 9, dtype=F32), n.f32(4, v[1], 3, 3), strides=(2, 2), group=v[0]),
        [(4, 1), (1, 1), (1, 2)],
        [(4, 2), (2, 1)],
    ),
    "deconv": Limit(
        ("dv700",),
        "at most 7",
        lambda n, v: n.b.deconv(x(n, 1, 4, 9, 9, dtype=F32), n.f32(4, 4, *v), strides=(2, 2)),
        [(7, 7)],
        [(9, 9)],
    ),
}


@pytest.mark.parametrize(("name", "chip"), [(name, chip) for name, limit in LIMITS.items() for chip in limit.chips])
def test_a_rule_holds_up_to_its_number(name: str, chip: str) -> None:
    limit, target = LIMITS[name], find_target(chip)

    def reason(value: Any) -> str | None:
        op = limit.make(Net([]), value).op
        assert op is not None
        return unsupported_reason(target, op)

    assert [reason(value) for value in limit.taken] == [None] * len(limit.taken)
    assert not any(limit.words in str(reason(value)) for value in limit.held)
    for value in limit.refused:
        assert limit.words in (reason(value) or "nothing is refused"), value
