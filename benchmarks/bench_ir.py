"""Times of the IR on a chain of convolutions: build, verify, print, parse.

python benchmarks/bench_ir.py [OPS]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.ops import parse_module
from bmcompiler.ops.builder import Builder


def build(count: int) -> Module:
    """A chain of `count` ops: conv and relu in turn; two weights per conv come on top."""
    builder = Builder.new("chain")
    value = builder.input("data", TensorType((1, 16, 28, 28)))
    weight, bias = np.zeros((16, 16, 3, 3), np.float32), np.zeros(16, np.float32)
    for index in range(count // 2):
        with builder.at(f"conv{index}"):
            operands = builder.weight(weight, f"w{index}"), builder.weight(bias, f"b{index}")
            value = builder.conv(value, *operands, pads=(1, 1, 1, 1))
        with builder.at(f"relu{index}"):
            value = builder.relu(value)
    return builder.outputs([value], ["out"])


def timed(what: str, action: Callable[[], Any], repeat: int = 3) -> Any:
    """Print the best of `repeat` times in milliseconds; returns the last result."""
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        result = action()
        best = min(best, time.perf_counter() - start)
    print(f"{what:8} {best * 1e3:8.1f} ms")
    return result


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    build(2)  # imports
    module = timed("build", lambda: build(count))
    timed("verify", lambda: verify_module(module))
    text = timed("print", lambda: str(module))
    parsed = timed("parse", lambda: parse_module(text))
    if str(parsed) != text:
        raise SystemExit("the text does not read back to itself")
    print(f"{sum(1 for _ in module.walk())} operations, {len(text) / 1e6:.2f} MB of text")


if __name__ == "__main__":
    main()
