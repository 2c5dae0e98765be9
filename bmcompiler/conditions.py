"""What passes need of a net and what they make of it, as conditions that are checked on the net itself.

A pass names conditions: `requires` before it, `ensures` after it, and what it `breaks`. A pipeline in which one is
missing is refused before its first pass runs, and each pass once more before it runs; `verify_each` asks what passes
ensure, and whether they break what they do not say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bmcompiler.errors import UsageError, VerifyError
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ir.keys import FLOAT_NOTE, GROUP, INPUT_THRESHOLDS, PLACE_CPU

if TYPE_CHECKING:
    from bmcompiler.passmanager import Pass, PassContext

OTHER_FLOATS = ("f16", "bf16", "f64")
"""Types that single-precision makes f32."""
_BYTES = ("i8", "u8")


@dataclass(frozen=True, eq=False)
class Condition:
    """Something that a pass may need.

    Attributes:
        name: what is needed, as a noun. says: what that means, as a clause.
        lacks: None where it holds, else what is in the way.
        remedy: what to do where the net itself lacks it; {name} is the pass.
        shows: whether it can be seen in the net for as long as it holds.
    """

    name: str
    says: str
    lacks: Callable[[Module, PassContext], str | None]
    remedy: str
    shows: bool = True


def other_floats(module: Module) -> list[Value]:
    """The 16-bit and f64 floats of a net; none of one that looks at the bits of such floats, which keeps its types."""
    found = [value for value in _values(module) if value.dtype in OTHER_FLOATS]
    reads = found and any(op.short_name == "bit_cast" for value in found for op in (value.op, *value.users) if op)
    return [] if reads else found


def is_quantized(module: Module) -> bool:
    """Whether tensors are integers with a scale, or layers say why they stayed in float: as quantize leaves a net."""
    values = (*module.main.arguments, *(result for op in module.main.ops for result in op.results))
    return any(value.type.quant is not None for value in values) or _noted(module, FLOAT_NOTE) is not None


def _values(module: Module) -> Iterator[Value]:
    for function in module.functions:
        yield from function.arguments
    for op in module.walk():
        yield from op.results


def _first(found: Iterable[Value], text: str) -> str | None:
    value = next(iter(found), None)
    name = "an input" if value is None or value.op is None else f"'{value.op.label}'"
    return None if value is None else text.format(name=name, dtype=value.dtype)


def _measured(function: Function) -> bool:
    return INPUT_THRESHOLDS in function.attributes


def _lacks_integers(module: Module, _: PassContext) -> str | None:
    computing = any(op.operands and op.results for op in module.main.ops)
    integers = is_quantized(module) or any(value.dtype in _BYTES for value in _values(module))
    integers |= _noted(module, PLACE_CPU) is not None  # all of it may be left to the host
    return "nothing in the net is an integer" if computing and not integers else None


def _noted(module: Module, note: str) -> Operation | None:
    return next((op for op in module.walk() if note in op.attributes), None)


def _grouped(module: Module, _: PassContext) -> str | None:
    op = _noted(module, GROUP)
    return None if op is None else f"'{op.label}' belongs to a group"


ONE_FLOAT = Condition(
    "one type of floats",
    "every float of the net is f32",
    lambda module, _: _first(other_floats(module), "{name} is {dtype}"),
    "run single-precision before {name}",
)
SOURCE_TYPES = Condition(
    "a net with its source's types",
    "neither integers nor 16-bit floats are chosen yet",
    lambda module, _: "quantize left layers in float" if _noted(module, FLOAT_NOTE) else None,  # nets may have integers
    "take the net as it was before quantize",
)
NO_THRESHOLDS = Condition(
    "a net without thresholds",
    "tensors that it makes would have none",
    lambda module, _: "the net is calibrated" if any(map(_measured, module.functions)) else None,
    "take the net as it was before calibrate",
)
THRESHOLDS = Condition(
    "a calibrated net",
    "every float tensor has its threshold",
    lambda module, _: None if all(map(_measured, module.functions)) else "the net is not calibrated",
    "run calibrate before {name}",
)
INTEGERS = Condition(
    "a quantized net",
    "what it works on are integers",
    _lacks_integers,
    "run quantize before {name}",
    shows=False,  # layout may rewrite the layers that tell it
)
NO_LAYOUT = Condition(
    "a net without layout",
    "no layer is laid out for lanes or belongs to a group",
    _grouped,
    "take the net as it was before passes of layout",
)
NO_GROUPS = Condition(
    "a net without groups",
    "no layer belongs to a group or a run",
    _grouped,
    "take the net as it was before group-layers",
)
A_CHIP = Condition(
    "a chip",
    "it asks the chip what it computes",
    lambda _, ctx: "no chip is named" if ctx.target is None else None,
    "name a target",
)
CONDITIONS = (ONE_FLOAT, SOURCE_TYPES, NO_THRESHOLDS, THRESHOLDS, INTEGERS, NO_LAYOUT, NO_GROUPS, A_CHIP)
"""Those that passes of several chips name."""


def has_scheme(scheme: str) -> Condition:
    """The condition that the chip, where one is named, computes integers of a scheme (`Target.schemes`)."""

    def lacks(_: Module, ctx: PassContext) -> str | None:
        schemes = (scheme,) if ctx.target is None else ctx.target.schemes
        has = " or ".join(schemes) or "none, for it computes no integers"
        return None if scheme in schemes else f"{ctx.target.name} has {has}"

    says = f"integers have the scheme {scheme}"
    return Condition("a scheme of the chip", says, lacks, "give quantize the option scheme that the chip has")


class Known:
    """What the passes so far say of the net: what holds, and what does not any more, with the pass that ended it."""

    def __init__(self, ran: Iterable[Pass] = ()) -> None:
        self.given: set[Condition] = set()
        self.ended: dict[Condition, str] = {}
        for each in ran:
            self.after(each)

    def need(self, each: Pass, module: Module, ctx: PassContext, *, promised: bool) -> None:
        """Raise UsageError for a condition of a pass that is missing; `promised`: what passes ensure need not show."""
        for condition in each.needs():
            needs = f"the pass '{each.name}' needs {condition.name} ({condition.says})"
            if condition in self.ended:
                before = self.ended[condition]
                raise UsageError(f"{needs}, but '{before}' comes before it", remedy=f"run {each.name} before {before}")
            if condition in self.given and (promised or not condition.shows):
                continue
            lack = condition.lacks(module, ctx)
            if lack is not None:
                raise UsageError(f"{needs}, but {lack}", remedy=condition.remedy.format(name=each.name))
            if promised:  # the net stays as it is while an order is asked
                self.given.add(condition)

    def after(self, each: Pass) -> None:
        """Take note of what a pass says of itself."""
        self.given = (self.given | {*each.ensures}) - {*each.breaks}
        kept = {condition: name for condition, name in self.ended.items() if condition not in each.ensures}
        self.ended = kept | dict.fromkeys(each.breaks, each.name)


def need_order(pipeline: Iterable[Pass], module: Module, ctx: PassContext, ran: Iterable[Pass] = ()) -> None:
    """Raise UsageError for the first pass of a pipeline whose conditions neither the net nor a pass before it meets.

    ran: passes before the pipeline.
    """
    known = Known(ran)
    for each in pipeline:
        known.need(each, module, ctx, promised=True)
        known.after(each)


def showing(module: Module, ctx: PassContext) -> list[Condition]:
    """The conditions that can be seen in the net."""
    return [each for each in CONDITIONS if each.shows and each.lacks(module, ctx) is None]


def verify_said(ran: Pass, before: Iterable[Condition], module: Module, ctx: PassContext) -> None:
    """Raise VerifyError where a pass did not do what it ensures, or broke what it does not say; `before`: `showing`."""
    for condition in ran.ensures:
        if (lack := condition.lacks(module, ctx)) is not None:
            raise VerifyError(f"the pass '{ran.name}' ensures {condition.name}, but {lack}")
    for condition in before:
        if condition not in ran.breaks and (lack := condition.lacks(module, ctx)) is not None:
            raise VerifyError(f"the pass '{ran.name}' does not say that it breaks {condition.name}, but {lack}")
