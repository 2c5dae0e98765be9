"""Passes and pipelines: `Pipeline.parse("fold-constants,calibrate{method=kl,bins=2048}")`, printed back by `str`.

A pass is a frozen dataclass; its fields are its options. Passes are found by kebab-case name through the entry point
group `bmcompiler.passes` and imported only when a pipeline names them.

Text form: PASS{OPTION=VALUE,...},PASS,... A value is true/false, a number, a bare word, a "quoted string" (JSON
escapes), or a [list] of words. Options equal to their default are not printed.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, get_type_hints

from bmcompiler.conditions import Condition, Known, need_order, showing, verify_said
from bmcompiler.errors import UsageError, VerifyError
from bmcompiler.ir import Module, verify_module
from bmcompiler.pipelines import PassRow
from bmcompiler.plugins.registry import PluginError, entry_points

if TYPE_CHECKING:
    from bmcompiler.analysis.trial import Trial
    from bmcompiler.inputs.source import Data
    from bmcompiler.options import Judged, Progress
    from bmcompiler.parallel import Pool

GROUP = "bmcompiler.passes"
_TOKEN = re.compile(r'\s*(?:(?P<punct>[{}\[\],=])|(?P<string>"(?:[^"\\]|\\.)*")|(?P<word>[^\s{}\[\],="]+))')
_BARE = re.compile(r'[^\s{}\[\],="]+')
_KINDS: dict[Any, str] = {int: "int", float: "float", bool: "bool", str: "str", tuple[str, ...]: "list of str"}
_Given = tuple[str, bool] | list[str]
"""A value as read: (text, was it quoted), or a list of words."""


@dataclass(frozen=True)
class PassResult:
    """What a pass did. `modified` is False only when the module is exactly as before."""

    modified: bool


_State = TypeVar("_State")


@dataclass
class PassContext:
    """What passes know besides the module. Passes may fill `table`; the driver gives all of them one context."""

    target: Any = None
    """The `Target` compiled for; None for target-independent pipelines."""
    data: Data | None = None
    """Calibration samples by input name, samples on axis 0, or a source of them (`bmcompiler.inputs`)."""
    table: Any = None
    """The `CalibrationTable` in force."""
    progress: Progress | None = None
    """Wraps long loops."""
    pool: Pool | None = None
    """Runs the samples; None: this process does."""
    trial: Trial | None = None
    """Times programs of modules; None where nothing can."""
    decisions: Judged = "auto"
    """What outputs decide (`evaluation.decisions`)."""
    log: Callable[[str], None] = lambda text: None
    """Receives printed IR and progress lines."""
    notes: list[str] = field(default_factory=list)
    """Sentences for the compile summary."""
    _states: dict[type, Any] = field(default_factory=dict)

    def state(self, kind: type[_State]) -> _State:
        """What passes keep for each other in an object of this class, made without arguments when first asked for."""
        found: _State = self._states.setdefault(kind, kind())
        return found


@dataclass(frozen=True)
class Pass:
    """Base of all passes: set `name`, declare options as fields (int, float, bool, str, tuple[str, ...]), define `run`.

    A field may carry `metadata={"choices": (...)}`; other limits are checked in `__post_init__` (raise UsageError).
    """

    name: ClassVar[str] = ""
    canonicalize_after: ClassVar[str] = ""
    """For passes of other packages: the rewrite behind which canonicalize runs this one, too; "" for none."""
    parts: ClassVar[tuple[PassRow, ...]] = ()
    """The passes that this one runs in turn until none changes anything, in order."""
    requires: ClassVar[tuple[Condition, ...]] = ()
    """What must hold before it."""
    ensures: ClassVar[tuple[Condition, ...]] = ()
    """What holds after it."""
    breaks: ClassVar[tuple[Condition, ...]] = ()
    """What may not hold any more after it."""
    drops_work: ClassVar[bool] = False
    """Whether layers may go whose results are constant, computed twice, or not asked for; else what is needed stays."""
    loses_bits: ClassVar[bool] = False
    """Whether numbers are less exact than before: `bmcompiler.accuracy` measures what the net loses."""
    takes_table: ClassVar[bool] = False
    """Whether a quantization table can say how layers compute."""

    @property
    def takes_io(self) -> bool:
        """Whether an option `io` decides what the net takes and gives."""
        return False

    def needs(self) -> tuple[Condition, ...]:
        """`requires`, with what follows from the options."""
        return self.requires

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        """Change `module` in place. Says truthfully whether anything changed."""
        raise TypeError(f"pass {type(self).__name__} defines no run")

    def __str__(self) -> str:
        given = [(f.name, getattr(self, f.name)) for f in fields(self)]
        texts = [f"{name}={_format(v)}" for (name, v), f in zip(given, fields(self)) if v != _default(f)]
        return self.name + (f"{{{','.join(texts)}}}" if texts else "")


@dataclass(frozen=True)
class Pipeline:
    """Passes in order. `Pipeline.parse(str(p)) == p`."""

    passes: tuple[Pass, ...] = ()

    @staticmethod
    def parse(text: str) -> Pipeline:
        """Read a pipeline string. Raises UsageError naming the unknown pass, option or bad value and what is known."""
        return Pipeline(tuple(_Reader(text).pipeline()))

    def __str__(self) -> str:
        return ",".join(map(str, self.passes))

    def __iter__(self) -> Iterator[Pass]:
        return iter(self.passes)


def find_pass(name: str) -> type[Pass]:
    """The pass class called `name`. Raises UsageError with the nearest names when there is none."""
    known = entry_points(GROUP)
    if name not in known:
        if _is_ours(name):
            remedy = "install bmcompiler again: it was installed before it had this pass"
            raise UsageError(f"the pass '{name}' is not registered", remedy=remedy)
        near = difflib.get_close_matches(name, known, 3, 0.5)
        remedy = f"did you mean {' or '.join(near)}?" if near else f"the passes are: {', '.join(known)}"
        raise UsageError(f"there is no pass '{name}'", remedy=remedy)
    cls: type[Pass] = known[name]()
    return cls


def _is_ours(name: str) -> bool:
    """Whether there is a file for the pass, so that only its entry point is missing."""
    file = f"{name.replace('-', '_')}.py"
    places = ((GROUP, f"**/{file}"), ("bmcompiler.backends", f"*/passes/{file}"))
    return any(any(Path(each).glob(at)) for package, at in places for each in import_module(package).__path__)


def pass_names() -> list[str]:
    """Names of all installed passes, sorted; imports none of them."""
    return list(entry_points(GROUP))


def installed_passes() -> Iterator[type[Pass]]:
    """All passes that can be imported, by name; `registry.failures` has the others."""
    return _usable(pass_names())


def foreign_passes() -> Iterator[type[Pass]]:
    """The passes of other packages that can be imported, by name; imports none of ours."""
    return _usable(name for name, loader in entry_points(GROUP).items() if not loader.built_in)


def _usable(names: Iterable[str]) -> Iterator[type[Pass]]:
    for name in names:
        try:
            yield find_pass(name)
        except PluginError:
            continue


def describe_options(cls: type[Pass]) -> str:
    """The options of a pass with types and defaults: "method: str = max (max|kl), bins: int = 2048"."""
    hints = _hints(cls)
    texts = []
    for each in fields(cls):
        default = _default(each)
        text = f"{each.name}: {_KINDS[hints[each.name]]}" + ("" if default is MISSING else f" = {_format(default)}")
        choices = each.metadata.get("choices")
        texts.append(text + (f" ({'|'.join(choices)})" if choices else ""))
    return ", ".join(texts) or "none"


def run_pipeline(
    module: Module,
    pipeline: Pipeline | str,
    ctx: PassContext | None = None,
    *,
    print_ir_after: str | None = None,
    verify_each: bool = False,
    verify: Callable[[Module], None] = verify_module,
    timing: list[tuple[str, float]] | None = None,
    after: Callable[[Pass, Module], None] | None = None,
    ran: Iterable[Pass] = (),
) -> bool:
    """Run all passes on `module` in place; True when any of them changed it.

    Args:
        print_ir_after: "all" or the name of a pass of the pipeline; the text goes to `ctx.log`.
        verify_each: run `verify` after every pass, and ask whether it did what it says of conditions.
        timing: receives (pass text, seconds) per pass.
        after: called with every pass that has run.
        ran: the passes that count as run before.

    Raises:
        UsageError: `print_ir_after` names no pass of the pipeline, or a pass lacks a condition that it requires.
        VerifyError: the module is broken after a pass (the message names the pass), or, asked always, the layers need
            other multiply-accumulates than before.
    """
    pipeline = Pipeline.parse(pipeline) if isinstance(pipeline, str) else pipeline
    ctx = PassContext() if ctx is None else ctx
    names = [p.name for p in pipeline]
    if print_ir_after not in (None, "all", *names):
        raise UsageError(f"cannot print IR after '{print_ir_after}': the pipeline runs {', '.join(names) or 'no pass'}")
    need_order(pipeline, module, ctx, ran)
    known, modified, needed = Known(ran), False, _macs(module)
    for each in pipeline:
        known.need(each, module, ctx, promised=False)
        shown = showing(module, ctx) if verify_each else []
        start = time.perf_counter()
        changed = each.run(module, ctx).modified
        modified |= changed
        if timing is not None:
            timing.append((str(each), time.perf_counter() - start))
        if print_ir_after in ("all", each.name):
            ctx.log(f"// IR after {each}\n{module}")
        known.after(each)
        if verify_each:
            _verify_after(module, each, verify)
            verify_said(each, shown, module, ctx)
        if changed or verify_each:
            needed = _verified_work(module, each, needed)
        if after is not None:
            after(each, module)
    return modified


def _verify_after(module: Module, ran: Pass, verify: Callable[[Module], None]) -> None:
    try:
        verify(module)
    except VerifyError as error:
        raise VerifyError(f"after pass {ran}: {error.reason}", layer=error.layer, kind=error.kind) from error


def _macs(module: Module) -> int:
    return sum(op.macs() for op in module.walk())


def _verified_work(module: Module, ran: Pass, before: int) -> int:
    """What the layers need; it stays what it was `before`. Raises VerifyError. Under 0.5 % of a compilation's time."""
    after = _macs(module)
    if after > before or (after < before and not ran.drops_work):
        raise VerifyError(f"after pass {ran}: the layers need {after:,} multiply-accumulates, {before:,} before")
    return after


def _default(option: Field[Any]) -> Any:
    return option.default if option.default_factory is MISSING else option.default_factory()


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, tuple):
        return f"[{','.join(map(_format, value))}]"
    return value if _BARE.fullmatch(value) else json.dumps(value)


def _convert(kind: Any, given: _Given) -> Any:
    """Raises ValueError when the text is no value of that kind."""
    if kind == tuple[str, ...]:
        return tuple(given) if isinstance(given, list) else (given[0],)
    if isinstance(given, list) or (given[1] and kind is not str):
        raise ValueError
    text = given[0]
    if kind is bool:
        return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
    value = kind(text)
    if kind is float and not math.isfinite(value):
        raise ValueError
    return value


_HINTS: dict[type[Pass], dict[str, Any]] = {}


def _hints(cls: type[Pass]) -> dict[str, Any]:
    """Types of the fields, read once: they are texts in the source."""
    if cls not in _HINTS:
        _HINTS[cls] = get_type_hints(cls)
    return _HINTS[cls]


def _make(cls: type[Pass], given: Mapping[str, _Given]) -> Pass:
    hints = _hints(cls)
    options = {f.name: f for f in fields(cls)}
    values: dict[str, Any] = {}
    for name, text in given.items():
        if name not in options:
            raise UsageError(f"pass {cls.name} has no option '{name}'", remedy=f"its options: {describe_options(cls)}")
        choices = options[name].metadata.get("choices")
        try:
            values[name] = _convert(hints[name], text)
        except (ValueError, KeyError):
            shown = "[...]" if isinstance(text, list) else text[0]
            raise UsageError(f"pass {cls.name}: option {name} must be {_KINDS[hints[name]]}, got '{shown}'") from None
        if choices and values[name] not in choices:
            raise UsageError(f"pass {cls.name}: option {name} must be {' or '.join(choices)}, got '{values[name]}'")
    missing = [f.name for f in options.values() if _default(f) is MISSING and f.name not in values]
    if missing:
        raise UsageError(f"pass {cls.name} needs option {missing[0]}", remedy=f"its options: {describe_options(cls)}")
    return cls(**values)


class _Reader:
    """Recursive descent over pipeline text."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def fail(self, expected: str) -> NoReturn:
        rest = self.text[self.at :].strip()
        found = f"'{rest[:20]}'" if rest else "the end"
        raise UsageError(f"pipeline '{self.text}': expected {expected} at column {self.at + 1}, found {found}")

    def accept(self, kind: str, text: str | None = None) -> str | None:
        match = _TOKEN.match(self.text, self.at)
        if match is None or match[kind] is None or (text is not None and match[kind] != text):
            return None
        self.at = match.end()
        return match[kind]

    def word(self, what: str) -> str:
        return self.accept("word") or self.fail(what)

    def pipeline(self) -> Iterator[Pass]:
        if not self.text.strip():
            return
        while True:
            yield self.one_pass()
            if not self.text[self.at :].strip():
                return
            if not self.accept("punct", ","):
                self.fail("',' between passes")

    def one_pass(self) -> Pass:
        cls = find_pass(self.word("the name of a pass"))
        given: dict[str, _Given] = {}
        if self.accept("punct", "{") and not self.accept("punct", "}"):
            while True:
                name = self.word("an option name").replace("-", "_")
                if name in given:
                    raise UsageError(f"pass {cls.name}: option {name} is given twice")
                if not self.accept("punct", "="):
                    self.fail(f"'=' after option {name}")
                given[name] = self.value()
                if self.accept("punct", "}"):
                    break
                if not self.accept("punct", ","):
                    self.fail("',' or '}'")
        return _make(cls, given)

    def scalar(self) -> tuple[str, bool]:
        quoted = self.accept("string")
        if quoted is None:
            return self.word("a value"), False
        try:
            return str(json.loads(quoted)), True
        except ValueError:
            self.fail("a string with JSON escapes")

    def value(self) -> _Given:
        if not self.accept("punct", "["):
            return self.scalar()
        words: list[str] = []
        while not self.accept("punct", "]"):
            if words and not self.accept("punct", ","):
                self.fail("',' or ']'")
            words.append(self.scalar()[0])
        return words
