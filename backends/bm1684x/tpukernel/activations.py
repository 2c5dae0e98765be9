"""Activations, roots and reciprocals (tpukernel.md 6)."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.codes import Cmp
from bmcompiler.backends.bm1684x.tpukernel import recipes
from bmcompiler.backends.bm1684x.tpukernel.composite import BY_ERF, DTYPE, SHAPE, Call, by_exp, prototype, row
from bmcompiler.backends.bm1684x.tpukernel.exponentials import exp, expm1
from bmcompiler.backends.bm1684x.tpukernel.rows import Rule, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import at_least, floats, single, within
from bmcompiler.backends.bm1684x.tpukernel.steps import Bits, Steps
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t

FP32 = data_type_t.DT_FP32


# -- activations -------------------------------------------------------------------------------------------------------
def sigmoid(s: Steps, c: Call) -> None:
    """D = 1 / (1 + e^-x)."""
    s.sub(c.w[0], 0.0, c.x)
    recipes.sigmoid(s, c.w[0], c.w, c.d, c.coeff_addr)


def silu(s: Steps, c: Call) -> None:
    """D = x / (1 + e^-x)."""
    sigmoid(s, c)
    s.mul(c.d, c.d, c.x)


def _scaled_sigmoid(s: Steps, c: Call, factor: float | Bits) -> None:
    """D = x sigmoid(factor x)."""
    s.mul(c.d, c.x, factor)
    s.sub(c.w[0], 0.0, c.d)
    recipes.sigmoid(s, c.w[0], c.w, c.d, c.coeff_addr)
    s.mul(c.d, c.d, c.x)


def gelu_fast2(s: Steps, c: Call) -> None:
    """D = x sigmoid(1.702 x)."""
    _scaled_sigmoid(s, c, 1.702)


def _elu(s: Steps, c: Call) -> None:
    expm1(s, c)
    if c.alpha != 1:
        s.mul(c.d, c.d, c.alpha)
    s.select(Cmp.SELECT_GT, c.d, c.x, 0.0, c.x, c.d)


def _selu(s: Steps, c: Call) -> None:
    expm1(s, c)
    s.mul(c.d, c.d, Bits(0x3FD6_2D7D))
    s.select(Cmp.SELECT_GT, c.d, c.x, 0.0, c.x, c.d)
    s.mul(c.d, c.d, Bits(0x3F86_7D5F))


def _mish(s: Steps, c: Call) -> None:
    """X tanh(ln(1 + e^x)) = x - 2 x / ((e^x + 1)^2 + 1), e^x kept between what can be squared and what vanishes."""
    d, x, (w0, w1) = c.d, c.x, c.w
    exp(s, c)
    s.copy(w0, Bits(0x5F7F_FFD8))
    s.select(Cmp.SELECT_GT, d, d, w0, w0, d)
    s.copy(w0, Bits(0x1FFF_FFDE))
    s.select(Cmp.SELECT_LT, d, d, w0, w0, d)
    s.square_of_sum(w1, d, 1.0)
    s.add(d, w1, 1.0)
    s.div(w0, x, d)
    s.mul(w1, w0, -2.0)
    s.add(d, x, w1)


def softplus(s: Steps, c: Call) -> None:
    """D = ln(1 + e^(beta x)) beta: the library divides the result by 1 / beta, which multiplies it by beta."""
    d, x, (w0, w1) = c.d, c.x, c.w
    scaled = x
    if c.beta != 1:
        s.mul(w0, x, c.beta)
        scaled = w0
    recipes.exp(s, scaled, w0, d, w1, c.exp_coeff_addr, d)
    s.add(w0, d, 1.0)
    recipes.log(s, w0, w0, w0, w1, c.log_coeff_addr, d if c.beta == 1 else w1)
    if c.beta != 1:
        s.div(d, w1, 1 / c.beta)


def _limited_softplus(s: Steps, c: Call) -> None:
    softplus(s, c)
    s.select(Cmp.SELECT_GT, c.d, c.x, 20.0, c.x, c.d)


def _softsign(s: Steps, c: Call) -> None:
    s.abs(c.d, c.x)
    s.add(c.d, c.d, 1.0)
    s.div(c.d, c.x, c.d)


def _log_sigmoid(s: Steps, c: Call) -> None:
    d, x, (w0, w1) = c.d, c.x, c.w
    recipes.exp(s, x, w0, d, w1, c.exp_coeff_addr, d)
    s.add(w1, d, 1.0)
    recipes.log(s, w1, w1, d, w0, c.log_coeff_addr, w0)
    s.sub(d, x, w0)


def erf(s: Steps, c: Call) -> None:
    """D is the error function of x."""
    recipes.erf(s, c.x, c.w, c.d, c.exp_coeff_addr, c.erf_coeff_addr)


def erfc(s: Steps, c: Call) -> None:
    """D is 1 less the error function of x."""
    erf(s, c)
    s.sub(c.d, 1.0, c.d)


def gelu(s: Steps, c: Call) -> None:
    """D = x (1 + erf(x / sqrt 2)) / 2."""
    *work, w3 = c.w
    s.mul(w3, c.x, Bits(0x3F35_04F3))
    recipes.erf(s, w3, tuple(work), c.d, c.exp_coeff_addr, c.erf_coeff_addr)
    s.add(c.w[1], c.d, 1.0)
    s.mul(c.d, c.w[1], 0.5)
    s.mul(c.d, c.d, c.x)


def gelu_fast(s: Steps, c: Call) -> None:
    """D = x (1 + tanh(sqrt(2 / pi) (x + 0.0447 x^3))) / 2."""
    d, x, (w0, w1) = c.d, c.x, c.w
    s.mul(w0, x, Bits(0x3D37_2713))
    s.mul(w1, w0, x)
    s.mul(w0, w1, x)
    s.add(w1, w0, x)
    s.mul(w0, w1, Bits(0x3F4C_422A))
    recipes.tanh(s, w0, c.w, d, c.coeff_addr)
    s.add(w1, d, 1.0)
    s.mul(w0, w1, 0.5)
    s.mul(d, w0, x)


def _hsigmoid(s: Steps, c: Call) -> None:
    d, (w0,) = c.d, c.w
    s.mul(d, c.x, c.alpha)
    s.add(w0, d, c.beta)
    s.max(w0, w0, 0.0)
    s.min(d, w0, 1.0)


def _hswish(s: Steps, c: Call) -> None:
    d, (w0,) = c.d, c.w
    s.add(d, c.x, 3.0)
    s.max(w0, d, 0.0)
    s.min(d, w0, 6.0)
    s.mul(w0, c.x, d)
    s.mul(d, w0, 1 / 6)


# -- roots and reciprocals ---------------------------------------------------------------------------------------------
def rsqrt(s: Steps, c: Call) -> None:
    """D is the reciprocal root of x, by `num_iter` steps or 3."""
    recipes.rsqrt(s, c.x, c.d, c.get("num_iter") or 3)


def sqrt(s: Steps, c: Call) -> None:
    """D is the root of x, by `num_iter` steps or 3."""
    recipes.sqrt(s, c.x, c.d, c.get("num_iter") or 3)


def compensated(s: Steps, c: Call, iterations: int, attempts: int) -> None:
    """D = 1 / x by so many iterations, then so many attempts of y + y (1 - x y), kept where the error is smaller."""
    d, x, (w0, w1, w2) = c.d, c.x, c.w
    s.div(d, 1.0, x, iterations)
    for _ in range(attempts):
        s.copy(w0, d)
        s.mul(w1, w0, x)
        s.sub(w1, 1.0, w1)
        s.mac(w0, w0, w1)
        s.mul(w2, w0, x)
        s.sub(w2, 1.0, w2)
        s.abs(w1, w1)
        s.abs(w2, w2)
        s.select(Cmp.SELECT_LT, d, w1, w2, d, w0)


# -- rows --------------------------------------------------------------------------------------------------------------
NOT_ZERO = Rule("beta must not be 0", lambda a: a.beta != 0)
NO_STRIDE = Rule("stride must be NULL: what it would mean is not known", lambda a: a.stride is None)
_HALF, _STEPS = floats("dtype"), within("num_iter", 1, 4)

ROWS = (
    *in_group(
        "Activations",
        by_exp("sigmoid", "1 / (1 + e^-src)", sigmoid),
        by_exp("silu", "src sigmoid(src)", silu),
        by_exp("swish", "src sigmoid(beta src)", lambda s, c: _scaled_sigmoid(s, c, c.beta), "float beta, "),
        by_exp("elu", "src > 0 ? src : alpha (e^src - 1)", _elu, "float alpha, "),
        by_exp("selu", "1.0507 (src > 0 ? src : 1.6733 (e^src - 1))", _selu),
        by_exp("mish", "src tanh(ln(1 + e^src))", _mish),
        row(
            prototype(
                "fp32_softplus", "work0", "work1", "exp_coeff", "log_coeff", "exp_table", end=f"{SHAPE}, float beta"
            ),
            "ln(1 + e^(beta src)) times beta, where the formula has / beta; src above 20",
            _limited_softplus,
            NOT_ZERO,
        ),
        row(prototype("fp32_softsign"), "src / (1 + abs(src))", _softsign),
        row(
            prototype("fp32_log_sigmoid", "work0", "work1", "exp_coeff", "exp_table", "log_coeff"),
            "ln(sigmoid(src))",
            _log_sigmoid,
        ),
        row(prototype("fp32_erf", "work0", "work1", "work2", *BY_ERF), "erf(src)", erf),
        row(prototype("fp32_erfc", "work0", "work1", "work2", *BY_ERF), "1 - erf(src)", erfc),
        row(
            prototype("fp32_gelu", "work0", "work1", "work2", "work3", *BY_ERF),
            "src (1 + erf(src / sqrt(2))) / 2",
            gelu,
        ),
        by_exp("gelu_fast", "src (1 + tanh(sqrt(2 / pi) (src + 0.0447 src^3))) / 2", gelu_fast),
        by_exp("gelu_fast2", "src sigmoid(1.702 src)", gelu_fast2),
        row(
            prototype("fp_hsigmoid", "work", end=f"{SHAPE}, float alpha, float beta, data_type_t dtype"),
            "alpha src + beta within [0, 1]",
            _hsigmoid,
            _HALF,
        ),
        row(prototype("fp_hswish", "work", end=DTYPE), "src (src + 3 within [0, 6]) / 6", _hswish, _HALF),
    ),
    *in_group(
        "Roots, reciprocals and signs",
        row(prototype("fp32_rsqrt"), "1 / sqrt(src)", rsqrt),
        row(prototype("fp32_tunable_rsqrt", end=f"{SHAPE}, int num_iter"), "1 / sqrt(src)", rsqrt, _STEPS),
        row(prototype("fp32_sqrt"), "sqrt(src)", sqrt),
        row(prototype("fp_sqrt", end=DTYPE), "sqrt(src)", sqrt, single("dtype")),
        row(prototype("sign", end=DTYPE), "src > 0 ? 1 : -1, 0 of +0", lambda s, c: recipes.sign(s, c.x, c.d), _HALF),
        row(
            prototype(
                "fp32_compensate_reciprocal",
                "work0",
                "work1",
                "work2",
                end=f"{SHAPE}, const dim4 *stride, int num_iter",
            ),
            "1 / src, improved num_iter times",
            lambda s, c: compensated(s, c, 3, c.num_iter),
            NO_STRIDE,
            at_least(0, "num_iter"),
        ),
    ),
)
