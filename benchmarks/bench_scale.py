"""CPU seconds of compilation by the size of a net: python benchmarks/bench_scale.py [--chip C] [--ops N...]

A chain of convolutions, and blocks of three with sums around them: in f32, and in int8 with the choice of modes on
four samples. The last column is the time of an op over that of an op of the smallest net: 1 is linear.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import bmcompiler
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops.builder import Builder

SIZES = (250, 500, 1000, 2000)
CHANNELS, SIDE = 16, 16
_SMALL = 0.1
"""Of what a block adds, so that sums of hundreds of blocks stay finite."""


def net(count: int, *, branchy: bool) -> Module:
    """About `count` ops: convolutions with a relu behind; branchy: three of them and two sums in a block."""
    builder, random = Builder.new("net"), np.random.default_rng(0)

    def layer(x: Value, gain: float = 1.0) -> Value:
        number = len(builder.function.ops)
        weight = random.normal(0, gain * (2 / CHANNELS / 9) ** 0.5, (CHANNELS, CHANNELS, 3, 3)).astype(np.float32)
        with builder.at(f"conv{number}"):
            y = builder.conv(x, builder.weight(weight, f"w{number}"), pads=(1, 1, 1, 1))
        with builder.at(f"relu{number}"):
            return builder.relu(y)

    value = builder.input("data", TensorType((1, CHANNELS, SIDE, SIDE)))
    for _ in range(count // 8 if branchy else count // 2):
        if not branchy:
            value = layer(value)
            continue
        left, right = layer(value), layer(value)
        with builder.at(f"add{len(builder.function.ops)}"):
            value = builder.add(layer(builder.add(left, right), _SMALL), value)
    return builder.outputs([value], ["out"])


def seconds(module: Module, chip: str, precision: str) -> float:
    """Of one compilation."""
    data = np.random.default_rng(1).standard_normal((4, CHANNELS, SIDE, SIDE)).astype(np.float32)
    start = time.process_time()
    bmcompiler.compile_module(
        module, target=chip, quantize=precision, data={"data": data} if precision == "int8" else None
    )
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--chip", default="bm1684")
    parser.add_argument("--ops", nargs="+", type=int, default=SIZES)
    parser.add_argument("--precision", nargs="+", default=("f32", "int8"))
    given = parser.parse_args()
    print(f"{'net':8}{'precision':>10}{'ops':>6}{'CPU s':>8}{'an op':>7}")
    for branchy in (False, True):
        for precision in given.precision:
            least = 0.0
            for count in given.ops:
                taken = seconds(net(count, branchy=branchy), given.chip, precision)
                least = least or taken / count
                name = "branchy" if branchy else "chain"
                print(f"{name:8}{precision:>10}{count:6}{taken:8.1f}{taken / count / least:7.2f}", flush=True)


if __name__ == "__main__":
    main()
