"""Where the modes of a net come from: a table, an option, an earlier input shape, or measurements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bmcompiler.errors import FileFormatError
from bmcompiler.ir import Function, Module, Operation
from bmcompiler.ir.keys import FLOAT_NOTE, LAYER_NAME, MODE_NOTE
from bmcompiler.numeric.two_terms import INT8
from bmcompiler.ops.modes import Products
from bmcompiler.passes.precision.calibrate import tensor_names, thresholds
from bmcompiler.passes.quantization.base import is_constant
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.choice.aim import Aim
from bmcompiler.passes.quantization.choice.chooser import Chooser
from bmcompiler.passes.quantization.choice.cost import cycles
from bmcompiler.passes.quantization.choice.hostile import hostile
from bmcompiler.passes.quantization.choice.programs import Programs
from bmcompiler.passes.quantization.choice.reference import Reference
from bmcompiler.passes.quantization.choice.summary import Choice
from bmcompiler.passes.quantization.choice.trials import Lower
from bmcompiler.passes.quantization.choice.ways import Ways
from bmcompiler.passes.quantization.scheme import array_of
from bmcompiler.passes.quantization.state import calibration_of, plan_of
from bmcompiler.passmanager import PassContext
from bmcompiler.quant.data import inputs_of, spread_steps
from bmcompiler.quant.mode_table import Row, load_modes
from bmcompiler.target import Target

_PRODUCTS = 16 << 30
"""Products that all samples of a measurement have together, at most (but some are always taken)."""
_STARTING = 5 << 20
"""Products that could be computed in the time in which an op starts to be."""
_FEWEST, _SAMPLES, _MOST = 4, 16, 64
"""Samples of a measurement: of any net; where products allow; where starting ops does, too, as one sample of a
classifier is one decision: 13 of 13 kept promise 83 % of others, 61 of 61 96 % (`evaluation/confidence.py`)."""


@dataclass(frozen=True)
class Wanted:
    """What options of the pass ask for.

    pass_name: the pass that asks. mode: of all layers, or "auto". table: file that says, or is told, what is decided.
    ways: the scheme's.
    """

    pass_name: str

    mode: str
    aim: Aim
    table: str
    ways: Ways


def decide(
    module: Module,
    function: Function,
    ctx: PassContext,
    lower: Lower,
    wanted: Wanted,
    in_float: Mapping[Operation, str],
) -> Choice:
    """The mode of each layer.

    1. What the file `table` says, where it exists, counts first; then what was decided for another input shape.
    2. With "auto", ops that integers do not suit are float (`hostile`).
    3. `mode` for all others; "auto" measures on the calibration data (`choice`), and without data takes "low", which
       costs least and mostly loses little. Products of what the net computes have no modes, but float may be quicker,
       or keep them from ruin.
    4. Where that loses decisions or takes more of the float program than accuracy may cost, and nothing was asked for,
       it is measured what comes of finer forms of layers (`Ways`) and float.

    Raises FileFormatError for a table with lines that do not fit the net.
    """
    names, mode, table = layer_names(function), wanted.mode, wanted.table
    given = {**plan_of(ctx).modes, **_from_table(table, set(names.values()))}
    choice = Choice()
    for op, name in names.items():
        if given.get(name) == "float" and op not in in_float and wanted.ways.conversions.of(type(op)) is not None:
            choice.in_float[op] = "the quantization table says so" if table else "decided for another input shape"
        elif given.get(name) in (*wanted.ways.modes, *wanted.ways.more):
            choice.modes[op] = given[name]
    if mode == "auto":
        for op, reason in hostile(
            function, thresholds(function), partial(array_of, module), steep=wanted.ways.steep
        ).items():
            if names.get(op) not in given and op not in in_float and wanted.ways.conversions.of(type(op)) is not None:
                choice.in_float[op] = reason
    kept = {**in_float, **choice.in_float}
    products = [op for op in names if isinstance(op, Products) and op not in choice.modes and op not in kept]
    left = [op for op in products if is_constant(op.operands[1])]
    choosable = products if wanted.ways.on_host or (wanted.ways.timed and ctx.trial is not None) else left
    if mode != "auto" or not choosable or ctx.data is None:
        default = wanted.ways.modes[0] if mode == "auto" else mode
        choice.modes = {**dict.fromkeys((op for op in function.ops if op not in kept), default), **choice.modes}
        if mode == "auto" and left and ctx.data is None:
            text = f"quantization modes: {default}, as there are no calibration data to measure others with"
            choice.notes += [text] if len(wanted.ways.modes) > 1 else []
        return choice
    reference = reference_of(module, function, ctx)
    trial = ctx.trial if wanted.ways.timed or wanted.ways.on_host else None
    programs = None if trial is None else Programs(trial, lambda: lower({}, kept)[0].module, wanted.pass_name)
    progress, explains = ctx.progress, bool(table)

    def chosen(ways: Ways, rival: Choice | None = None) -> Choice:
        chooser = Chooser(function, reference, lower, ctx.target, ways, progress, programs, explains=explains)
        return chooser.choose(wanted.aim, choice.modes, kept, rival)

    found = chosen(wanted.ways)
    if wanted.ways.finer and not wanted.aim.given and found.misses:
        found = found.or_better(chosen(replace(wanted.ways, modes=wanted.ways.finer), found))
    found.notes[-1] += found.offer()
    found.in_float = {**choice.in_float, **found.in_float}
    return found


def decided(function: Function, choice: Choice) -> dict[str, str]:
    """What other input shapes of the net take over, by layer name."""
    floats = dict.fromkeys(choice.in_float, "float")
    names = layer_names(function)
    return {names[op]: mode for op, mode in {**choice.modes, **floats}.items() if op in names}


def layer_names(function: Function) -> dict[Operation, str]:
    """Ops that compute, by the name of their first result, or the one that they had in the source."""
    known = tensor_names(function)
    computing = (op for op in function.ops[:-1] if op.operands and op.results)
    return {op: str(op.attributes.get(LAYER_NAME, known[op.results[0]][0])) for op in computing}


def rows(
    function: Function, choice: Choice, low: Building[Any], accepted: set[Operation], target: Target | None
) -> Iterable[Row]:
    """`Row`s of a quantization table: what became of each layer of the old function."""
    for op, name in layer_names(function).items():
        new = (low.ints if op in accepted else low.reals)[op.results[0]].op
        if new is None:
            continue
        if op not in accepted:
            yield Row(name, "float", None, cycles(new, target), str(new.attributes.get(FLOAT_NOTE, "")))
            continue
        mode = new.attributes.get("mode") if op.short_name == new.short_name else None
        mode = new.attributes.get(MODE_NOTE, mode)
        measured = choice.modes.get(op) == (mode or INT8)
        error = choice.errors.get(op) if measured else None
        taken = sum(cycles(each, target) for each in low.made[op] if each.operands)
        yield Row(name, str(mode or INT8), error, taken, choice.why.get(op, "") if measured else "")


def _from_table(table: str, names: set[str]) -> dict[str, str]:
    if not table or not Path(table).exists():
        return {}
    entries = load_modes(table)
    for name, entry in entries.items():
        if name not in names:
            raise FileFormatError(
                f"line {entry.line}: '{name}' is no layer of the network",
                file=table,
                remedy="remove the line, or delete the file to have it made again",
            )
    return {name: entry.mode for name, entry in entries.items()}


def reference_of(module: Module, function: Function, ctx: PassContext, most: int = _MOST) -> Reference:
    """The float net on up to `most` samples, from all over; fewer of large nets. Kept for who asks next."""
    asked, plan = (function, steps_to_measure(function, ctx, most)), plan_of(ctx)
    if plan.reference is None or plan.reference[0] != asked:
        look = calibration_of(ctx).look
        seen = look if look is not None and (look.function, look.steps) == asked else None
        steps = inputs_of(function, ctx.data or {}, asked[1])
        plan.reference = asked, Reference(module, function, steps, ctx.pool, seen, ctx.decisions)
    return plan.reference[1]


def steps_to_measure(function: Function, ctx: PassContext, most: int) -> tuple[int, ...]:
    """Numbers of the steps that `reference_of` takes."""
    products = max(1, sum(op.products() for op in function.ops))
    some = min(_SAMPLES, _PRODUCTS // products)
    many = _PRODUCTS // (products + _STARTING * len(function.ops))
    return spread_steps(function, ctx.data or {}, min(most, max(_FEWEST, some, many)))
