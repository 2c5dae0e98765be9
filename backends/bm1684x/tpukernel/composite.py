"""How a composite function is declared: registers and series by the names of the parameters, steps as a body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Emit, Function, Rule, parts_of
from bmcompiler.backends.bm1684x.tpukernel.rules import lane_zero, same_lane
from bmcompiler.backends.bm1684x.tpukernel.steps import Register, Steps
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t

_SERIES = ("coeff", "table", "exp_coeff", "log_coeff", "erf_coeff", "exp_table")
SHAPE = "const dim4 *shape"
DTYPE = f"{SHAPE}, data_type_t dtype"
BY_EXP = ("work0", "work1", "coeff", "table")
BY_SERIES = ("work", "coeff")
BY_ERF = ("exp_coeff", "erf_coeff", "exp_table")


class Call:
    """The arguments of a composite: registers d, x, w0, w1... and everything else by its name."""

    def __init__(self, a: Arguments, registers: dict[str, Register]) -> None:
        self.a = a
        self.d, self.x = registers["dst"], registers.get("src", registers.get("src0", registers["dst"]))
        self.w = tuple(register for name, register in registers.items() if name.startswith("work"))
        self.registers = registers

    def __getattr__(self, name: str) -> Any:
        return getattr(self.a, name)


Body = Callable[[Steps, Call], None]


def emitter(body: Body) -> Emit:
    """What a row emits whose steps are `body`."""

    def emit(k: Recorder, a: Arguments) -> None:
        names = [name.removesuffix("_addr") for name in vars(a) if name.endswith("_addr")]
        registers = {name: Register(name, getattr(a, f"{name}_addr")) for name in names if name not in _SERIES}
        dtype = a.dtype if a.get("dtype") is not None else data_type_t.DT_FP32
        body(Steps(k, a.shape, dtype, list(registers.values())), Call(a, registers))

    return emit


def prototype(name: str, *names: str, sources: str = "src", end: str = SHAPE) -> str:
    """The C prototype of a composite: addresses of result, sources, work and series, then the rest."""
    addresses = [f"local_addr_t {each}_addr" for each in ("dst", *sources.split(), *names)]
    return f"void tpu_bdc_{name}({', '.join([*addresses, end])})"


def row(text: str, formula: str, body: Body, *rules: Rule) -> Function:
    """A composite whose registers begin in one lane, and whose series begin in lane 0."""
    return emitting(text, formula, emitter(body), *rules)


def emitting(text: str, formula: str, emit: Emit, *rules: Rule) -> Function:
    """`row` with commands that are not all steps."""
    _, _, parameters = parts_of(text)
    names = [each.name.removesuffix("_addr") for each in parameters if each.base == "local_addr_t"]
    series = [name for name in names if name in _SERIES]
    lanes = (same_lane(*(name for name in names if name not in _SERIES)), *((lane_zero(*series),) if series else ()))
    return Function(text, formula, emit, (*rules, *lanes))


def by_exp(name: str, formula: str, body: Body, before: str = "") -> Function:
    """A composite in fp32 that needs the exponential."""
    return row(prototype(f"fp32_{name}", *BY_EXP, end=f"{before}{SHAPE}"), formula, body)


def by_series(name: str, formula: str, body: Body, after: str = "", *rules: Rule) -> Function:
    """A composite in fp32 that needs one series."""
    return row(prototype(f"fp32_{name}", *BY_SERIES, end=f"{SHAPE}{after}"), formula, body, *rules)
