"""One attention head in int8, in each of the three quantization modes: what they cost in accuracy and cycles.

    python examples/bmlang/int8_attention.py [FOLDER]

Projections and both products of attention are integer matrix products; softmax is computed in float32 between casts.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bmcompiler import bmlang
from bmcompiler.bmlang import (
    BOTH,
    COEFF_TENSOR,
    FLOAT32,
    INT8,
    ActiveType,
    MatrixMulParam,
    QCalMode,
    ReduceMethodType,
    ReduceParam,
    Tensor,
)

TOKENS, WIDTH = 16, 32


@dataclass
class Head:
    """Float weights of a head, and tokens (TOKENS, WIDTH) to look at."""

    tokens: Any
    query: Any
    key: Any
    value: Any

    @staticmethod
    def random(seed: int = 3) -> Head:
        rng = np.random.default_rng(seed)
        weights = rng.normal(0, WIDTH**-0.5, (3, WIDTH, WIDTH))
        return Head(rng.normal(0, 1, (TOKENS, WIDTH)), *weights)

    def exact(self) -> Any:
        """The head in float64."""
        q, k, v = self.tokens @ self.query, self.tokens @ self.key, self.tokens @ self.value
        scores = np.exp(q @ k.T / WIDTH**0.5)
        return scores / scores.sum(1, keepdims=True) @ v


def scale_of(real: Any) -> float:
    """The value of one step, so that int8 holds the largest number."""
    return float(np.abs(real).max()) / 127


def quantized(real: Any, scale: float, zero_point: int = 0) -> Any:
    return np.clip(np.rint(real / scale) + zero_point, -128, 127).astype(np.int8)


def range_of(real: Any) -> tuple[float, int]:
    """Scale and zero point with which int8 just holds all numbers."""
    scale = float(real.max() - real.min()) / 255
    return scale, round(-128 - float(real.min()) / scale)


def product(left: Tensor, right: Tensor, scale: float, mode: QCalMode, zero_point: int = 0) -> Tensor:
    """left @ (right - zero_point), times `scale`, as int8. The asymmetric mode takes constants on the right only."""
    usable = mode if right.constant or mode != QCalMode.HighPrecisionAsymmetric else QCalMode.HighPrecisionSymmetric
    return bmlang.matrix_mul([left, right], MatrixMulParam(scale, usable, 0, zero_point), dtype=INT8)


def softmax(scores: Tensor, scale: float) -> Tensor:
    """Rows of int8 scores as probabilities in 1/127."""
    real = bmlang.muls(bmlang.cast(scores, dtype=FLOAT32), scale)
    shifted = real - bmlang.reduce(real, ReduceParam(ReduceMethodType.REDUCE_MAX, (1,)))
    powers = bmlang.active(shifted, ActiveType.ACTIVE_EXP)
    total = bmlang.reduce(powers, ReduceParam(ReduceMethodType.REDUCE_SUM, (1,)))
    return bmlang.cast(bmlang.muls(powers / total, 127.0), dtype=INT8)


def attention(head: Head, tokens: Tensor, step: float, mode: QCalMode) -> tuple[Tensor, float]:
    """The result in int8, and the value of one step of it. `step`: that of the tokens."""

    def projected(weight: Any) -> tuple[Tensor, float]:
        own, zero = range_of(weight) if mode == QCalMode.HighPrecisionAsymmetric else (scale_of(weight), 0)
        out = scale_of(head.tokens @ weight)
        constant = Tensor(None, INT8, COEFF_TENSOR, list(weight.shape), data=quantized(weight, own, zero))
        return product(tokens, constant, step * own / out, mode, zero), out

    (q, of_q), (k, of_k), (v, of_v) = map(projected, (head.query, head.key, head.value))
    scores = head.tokens @ head.query @ (head.tokens @ head.key).T / WIDTH**0.5
    of_scores = scale_of(scores)
    weights = product(q, bmlang.permute(k, (1, 0)), of_q * of_k / WIDTH**0.5 / of_scores, mode)
    return product(softmax(weights, of_scores), v, 1 / 127, mode), of_v


def main(folder: Path) -> dict[str, float]:
    """Compile and check the head in each mode; returns the error of each in units of the largest value."""
    head, errors = Head.random(), {}
    want = head.exact()
    step = scale_of(head.tokens)
    print(f"{'mode':26} {'error':>8} {'cosine':>8} {'commands':>9}")
    for mode in QCalMode:
        with bmlang.init(BOTH, "BM1684", folder / mode.name) as program:
            tokens = Tensor("tokens", data=quantized(head.tokens, step))
            out, of_out = attention(head, tokens, step, mode)
            made = program.compile_with_check("attention", [tokens], [out])
        got = out.get_data() * of_out
        errors[mode.name] = float(np.abs(got - want).max() / np.abs(want).max())
        cosine = float((got * want).sum() / np.linalg.norm(got) / np.linalg.norm(want))
        commands = made.result.totals["TIU commands"]
        print(f"{mode.name:26} {errors[mode.name]:8.4f} {cosine:8.5f} {commands:9}")
        assert not made.host
    return errors


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
