"""Composites whose type is an argument, as newer kernels call them; on this chip most take fp32 only.

They need no table of powers.
"""

from __future__ import annotations

from bmcompiler.backends.bm1684x.codes import Ar
from bmcompiler.backends.bm1684x.tpukernel import activations, trigonometry
from bmcompiler.backends.bm1684x.tpukernel.composite import DTYPE, SHAPE, Body, Call, prototype, row
from bmcompiler.backends.bm1684x.tpukernel.exponentials import expm1
from bmcompiler.backends.bm1684x.tpukernel.rows import Function, Known, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import at_least, floats, single, within
from bmcompiler.backends.bm1684x.tpukernel.steps import Bits, Steps, bits_of
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t

_SINGLE, _STEPS = single("dtype"), within("num_iter", 1, 4)
_EXP = ("work0", "work1", "coeff")
_COMPENSATED = f"{SHAPE}, const dim4 *stride, int num_iter, int num_comp"
_EXPONENT = {data_type_t.DT_FP32: 0x7F80_0000, data_type_t.DT_FP16: 0x7C00, data_type_t.DT_BFP16: 0x7F80}
_ERF = ("work0", "work1", "work2", "exp_coeff", "erf_coeff")


def _isfinite(s: Steps, c: Call) -> None:
    """D = 1 where not all bits of the exponent are set."""
    all_set = Bits(_EXPONENT[s.dtype])
    s.bitwise(Ar.AND, c.w[0], c.x, all_set)
    s.equal(c.d, c.w[0], all_set, 1.0)
    s.bitwise(Ar.XOR, c.d, c.d, Bits(bits_of(1.0, s.dtype)))


def _of(name: str, formula: str, body: Body, *names: str) -> Function:
    return row(prototype(f"fp_{name}", *names, end=DTYPE), formula, body, _SINGLE)


ROWS = (
    *in_group(
        "Activations",
        _of("sigmoid", "1 / (1 + e^-src)", activations.sigmoid, *_EXP, "table"),
        _of("silu", "src sigmoid(src)", activations.silu, *_EXP, "table"),
        _of("erf", "erf(src)", activations.erf, *_ERF),
        _of("erfc", "1 - erf(src)", activations.erfc, *_ERF),
        _of("gelu", "src (1 + erf(src / sqrt(2))) / 2", activations.gelu, *_ERF[:3], "work3", *_ERF[3:]),
        _of(
            "gelu_fast", "src (1 + tanh(sqrt(2 / pi) (src + 0.0447 src^3))) / 2", activations.gelu_fast, *_EXP, "table"
        ),
        _of("gelu_fast2", "src sigmoid(1.702 src)", activations.gelu_fast2, *_EXP, "table"),
        row(
            prototype(
                "fp_softplus",
                *("work0", "work1", "exp_coeff", "log_coeff"),
                end=f"{SHAPE}, float beta, data_type_t dtype",
            ),
            "ln(1 + e^(beta src)) times beta",
            activations.softplus,
            _SINGLE,
            activations.NOT_ZERO,
        ),
        source=Known.DRAWN,
    ),
    *in_group(
        "Exponential and logarithm",
        row(prototype("fp_expm1", *_EXP, end=DTYPE), "e^src - 1", expm1, floats("dtype")),
        source=Known.DRAWN,
    ),
    *in_group(
        "Trigonometric and hyperbolic functions",
        _of("tanh", "tanh(src)", trigonometry.tanh, *_EXP),
        _of("sinh", "sinh(src)", trigonometry.hyperbolic("sub"), *_EXP),
        _of("cosh", "cosh(src)", trigonometry.hyperbolic("add"), *_EXP),
        _of("arcsin", "arcsin(src)", trigonometry.arcsin, "work", "coeff"),
        _of("arccos", "arccos(src)", trigonometry.arccos, "work", "coeff"),
        source=Known.DRAWN,
    ),
    *in_group(
        "Roots, reciprocals and signs",
        row(prototype("fp_rsqrt", end=DTYPE), "1 / sqrt(src)", activations.rsqrt, _SINGLE),
        row(
            prototype("fp_tunable_rsqrt", end=f"{DTYPE}, int num_iter"),
            "1 / sqrt(src)",
            activations.rsqrt,
            _SINGLE,
            _STEPS,
        ),
        row(prototype("fp_tunable_sqrt", end=f"{DTYPE}, int num_iter"), "sqrt(src)", activations.sqrt, _SINGLE, _STEPS),
        row(prototype("fp32_tunable_sqrt", end=f"{SHAPE}, int num_iter"), "sqrt(src)", activations.sqrt, _STEPS),
        row(
            prototype("fp32_tunable_compensate_reciprocal", *_ERF[:3], end=_COMPENSATED),
            "1 / src by num_iter steps, improved num_comp times",
            lambda s, c: activations.compensated(s, c, c.num_iter, c.num_comp),
            activations.NO_STRIDE,
            _STEPS,
            at_least(0, "num_comp"),
        ),
        source=Known.DRAWN,
    ),
    *in_group(
        "Compare and select",
        row(prototype("fp_isfinite", "work0", end=DTYPE), "src is a number ? 1 : 0", _isfinite, floats("dtype")),
        source=Known.DRAWN,
    ),
)
