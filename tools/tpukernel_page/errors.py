"""Errors of the composites: computed by the simulator on random numbers, compared with float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684x.tpukernel.rows import Function
from bmcompiler.numeric.special import erf
from bmcompiler.runtime.bm1684x_kernels import KernelDevice
from bmcompiler.tpukernel import BANK_SIZE, DT_FP32, FUNCTIONS, TABLE, dim4, program_of, recording

Array = NDArray[Any]
SHAPE = dim4(1, 64, 1, 512)
LEAST = 1e-3
"""Relative errors are those of results that are not smaller."""
_SEED = 16
_LOG, _EXP, _SIN, _COS, _TAN, _ARCSIN, _ERF = "log", "exp", "sin", "cos", "tan", "arcsin", "erf"


@dataclass(frozen=True)
class Measured:
    """A composite, the numbers it is measured on, and its largest errors there."""

    name: str
    numbers: str
    absolute: float
    relative: float


@dataclass(frozen=True)
class Question:
    """What is asked: the function, its numbers from `low` to `high`, their float64 result, further arguments.

    `series` is what the parameter `coeff` holds. With `exponents` the numbers are spread evenly over exponents.
    """

    name: str
    low: float
    high: float
    meaning: Callable[..., Array]
    series: str = _EXP
    exponents: bool = False
    more: tuple[tuple[str, float], ...] = ()

    def numbers(self, rng: np.random.Generator) -> Array:
        low, high = (math.log(self.low), math.log(self.high)) if self.exponents else (self.low, self.high)
        drawn = rng.uniform(low, high, SHAPE)
        return (np.exp(drawn) if self.exponents else drawn).astype(np.float32)

    @property
    def text(self) -> str:
        more = "".join(f", {name} = {value:g}" for name, value in self.more)
        return f"[{self.low:g}, {self.high:g}]{more}"


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _gelu(x: Array) -> Array:
    return x * (1 + erf(x / math.sqrt(2))) / 2


def _gelu_fast(x: Array) -> Array:
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def _elu(x: Array, alpha: float = 1.0) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _selu(x: Array) -> Array:
    return 1.0507009873554805 * _elu(x, 1.6732632423543772)


def _mish(x: Array) -> Array:
    return x * np.tanh(np.log1p(np.exp(x)))


def _hswish(x: Array) -> Array:
    return x * np.clip(x + 3, 0, 6) / 6


QUESTIONS = (
    Question("fp32_exp", -87, 88, np.exp),
    Question("fp32_exp", -1, 1, np.exp),
    Question("fp32_exp_by_table", -87, 88, np.exp),
    Question("fp32_exp_by_table", -1, 1, np.exp),
    Question("fp32_expm1", -1, 1, np.expm1),
    Question("fp32_log", 1e-35, 1e35, np.log, _LOG, exponents=True),
    Question("fp32_log", 0.5, 2, np.log, _LOG),
    Question("fp32_log1p", -0.9, 10, np.log1p, _LOG),
    Question("fp32_logx", 0.01, 100, lambda x, base: np.log(x) / np.log(base), _LOG, more=(("base", 10.0),)),
    Question("fp32_pow", 0.1, 20, lambda x, y: x**y, _LOG),
    Question("fp32_pow_C", 0.1, 20, lambda x, C: x**C, _LOG, more=(("C", 2.5),)),
    Question("fp32_C_pow", -10, 10, lambda x, C: C**x, more=(("C", 2.5),)),
    Question("fp32_sin", -20, 20, np.sin, _SIN),
    Question("fp32_cos", -20, 20, np.cos, _COS),
    Question("fp32_tan", -1.5, 1.5, np.tan, _TAN),
    Question("fp32_cot", 0.1, 1.5, lambda x: 1 / np.tan(x), _TAN),
    Question("fp32_arcsin", -1, 1, np.arcsin, _ARCSIN),
    Question("fp32_arccos", -1, 1, np.arccos, _ARCSIN),
    Question("fp32_sinh", -10, 10, np.sinh),
    Question("fp32_cosh", -10, 10, np.cosh),
    Question("fp32_tanh", -10, 10, np.tanh),
    Question("fp32_arcsinh", -10, 10, np.arcsinh, _LOG),
    Question("fp32_arccosh", 1.1, 10, np.arccosh, _LOG),
    Question("fp32_arctanh", -0.99, 0.99, np.arctanh, _LOG),
    Question("fp32_sigmoid", -20, 20, _sigmoid),
    Question("fp32_silu", -20, 20, lambda x: x * _sigmoid(x)),
    Question("fp32_swish", -10, 10, lambda x, beta: x * _sigmoid(beta * x), more=(("beta", 1.5),)),
    Question("fp32_elu", -10, 10, _elu, more=(("alpha", 0.75),)),
    Question("fp32_selu", -10, 10, _selu),
    Question("fp32_mish", -10, 10, _mish),
    Question("fp32_softplus", -20, 20, lambda x, beta: np.log1p(np.exp(x)), more=(("beta", 1.0),)),
    Question("fp32_softsign", -10, 10, lambda x: x / (1 + abs(x))),
    Question("fp32_log_sigmoid", -20, 10, lambda x: -np.log1p(np.exp(-x))),
    Question("fp32_erf", -5, 5, erf),
    Question("fp32_erfc", -5, 5, lambda x: 1 - erf(x)),
    Question("fp32_gelu", -6, 6, _gelu),
    Question("fp32_gelu_fast", -6, 6, _gelu_fast),
    Question("fp32_gelu_fast2", -6, 6, lambda x: x * _sigmoid(1.702 * x)),
    Question(
        "fp_hsigmoid",
        -6,
        6,
        lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
        more=(("alpha", 0.2), ("beta", 0.5)),
    ),
    Question("fp_hswish", -6, 6, _hswish),
    Question("fp32_div", 1e-3, 1e3, lambda x, y: x / y, exponents=True),
    Question("fp32_reciprocal", 1e-3, 1e3, lambda x: 1 / x, exponents=True),
    Question(
        "fp32_compensate_reciprocal", 1e-3, 1e3, lambda x, num_iter: 1 / x, exponents=True, more=(("num_iter", 2),)
    ),
    Question("fp32_rsqrt", 1e-6, 1e6, lambda x: 1 / np.sqrt(x), exponents=True),
    Question("fp32_sqrt", 1e-6, 1e6, np.sqrt, exponents=True),
)


def measured() -> list[Measured]:
    """All of them, always on the same numbers."""
    device, rng = KernelDevice(1 << 20), np.random.default_rng(_SEED)
    return [_measured(device, rng, question) for question in QUESTIONS]


def _measured(device: KernelDevice, rng: np.random.Generator, question: Question) -> Measured:
    row = TABLE[f"tpu_bdc_{question.name}"]
    sources = [question.numbers(rng)]
    if any(each.name == "src1_addr" for each in row.parameters):
        sources.append(rng.uniform(0.5, 2, SHAPE).astype(np.float32))
    with np.errstate(all="ignore"):
        wanted = question.meaning(*(each.astype(np.float64) for each in sources), **dict(question.more))
        difference = abs(_computed(device, row, question, sources) - wanted)
        relative = (difference / abs(wanted))[abs(wanted) >= LEAST]
    return Measured(row.name, question.text, float(difference.max()), float(relative.max()))


def _computed(device: KernelDevice, row: Function, question: Question, sources: list[Array]) -> Array:
    """The result of the function; every tensor has a bank of its own."""
    device.free_all()
    given: dict[str, Any] = {"shape": SHAPE, "dtype": DT_FP32, **dict(question.more)}
    given |= {each.name: None for each in row.parameters if each.optional}
    addresses = [each.name for each in row.parameters if each.base == "local_addr_t"]
    places = {name: bank * BANK_SIZE for bank, name in enumerate(addresses)}
    loaded = iter(device.upload(source) for source in sources)
    with recording() as recorder:
        for name, place in places.items():
            what = name.removesuffix("_addr")
            if what.startswith("src"):
                FUNCTIONS["tpu_gdma_cpy_S2L"](place, next(loaded), SHAPE, None, None, DT_FP32)
            elif what.endswith("table"):
                FUNCTIONS["tpu_bdc_load_fp32_exp_table"](place)
            elif what.endswith("coeff"):
                series = question.series if what == "coeff" else what.removesuffix("_coeff")
                FUNCTIONS[f"tpu_bdc_load_fp32_{series}_coeff"](place)
        wanted = {each.name for each in row.parameters}
        FUNCTIONS[row.name](**{name: value for name, value in (given | places).items() if name in wanted})
    device.launch(program_of(recorder))
    return device.local(places["dst_addr"], SHAPE, DT_FP32).astype(np.float64)
