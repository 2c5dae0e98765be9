"""Questions about the time a program takes, by the chip's timing model."""

from __future__ import annotations

from collections import defaultdict

from bmcompiler.analysis.profile import Timing
from bmcompiler.report.data import report_data
from bmcompiler.result import Result

from .trial import CheckError, NotAskedError, Trial, timing_of

TIMES, SHARE = 8, 0.1
"""A layer of more than so many times its bound and this share of the time is warned of."""
TWICE = 2.3
"""Times that twice the batch may take."""
LEAST = 50e-6
"""Seconds: in shorter programs starts of commands, which every layer has, are most of the time."""
FLOATS = {"bm1684": ("f32",), "bm1684x": ("f32", "f16")}


def cliffs_are_said(trial: Trial) -> None:
    """A layer far over its bound has a warning, in the JSON as in the summary."""
    result, timing = trial.compiled(), trial.timing
    said = report_data(result)["cliffs"]
    named, lines = (
        {(cliff["layer"], cliff["kind"]) for cliff in said},
        " ".join(repr(result).split()).count("times its bound"),
    )
    silent = [cliff for cliff in cliffs(result, timing) if cliff[:2] not in named]
    if silent:
        layer, kind, times, share = silent[0]
        text = f"layer '{layer}' ({kind}) takes {times:.1f} times its bound and {share:.0%} of the time, unsaid"
        raise CheckError("cliff unsaid", text)
    if said and not lines:
        raise CheckError("cliff unsaid", f"{len(said)} in JSON, none in the summary")


def cliffs_are_few(trial: Trial) -> None:
    """What the compiler warns of is noted as well, so that the worst are known and mended."""
    found = cliffs(trial.compiled(), trial.timing)
    if found:
        layer, kind, times, share = max(found, key=lambda cliff: cliff[2] * cliff[3])
        shape = next((row.shape for row in trial.compiled().rows if row.layer == layer and row.kind == kind), ())
        text = f"{kind} {list(shape)} '{layer}' takes {times:.1f} times its bound, {share:.0%} of the time"
        raise CheckError(f"cliff of {kind}", text)


def cliffs(result: Result, timing: Timing) -> list[tuple[str, str, float, float]]:
    """(layer, kind, times its bound, share of the time) of layers far over it, found without the report.

    The bound: arithmetic as counted in the program's commands, and the bytes of operands and results of the final IR.
    """
    nbytes: dict[tuple[str, str], int] = defaultdict(int)
    parts: dict[str, int] = defaultdict(int)
    for op in result.module.main.ops:
        one = sum(each.type.nbytes for each in {*op.operands, *op.results})
        nbytes[op.label, op.title] += one
        parts[op.label] += one
    found = []
    for layer in timing.layers:
        moved = nbytes.get((layer.name, layer.kind))
        if moved is None:  # several ops in one run
            moved = max((parts.get(name, 0) for name in layer.name.split(", ")), default=0)
        bound = max(layer.compute_bound, moved / (timing.bus_bytes_per_cycle or 1e30))
        taken, share = max(layer.cycles, layer.compute, layer.transfer), layer.cycles / max(timing.cycles, 1)
        slow = bound and taken > TIMES * bound and share > SHARE
        if slow and taken >= LEAST * timing.clock_hz:
            found.append((layer.name, layer.kind, taken / bound, share))
    return found


def rows_have_bounds(trial: Trial) -> None:
    """Each row that takes time has a bound: of its arithmetic or of its bytes."""
    data = report_data(trial.compiled())
    if data["timing"] is None:
        raise NotAskedError("no timing model")
    rows = [row for row in (*data["layers"], *data["other_commands"]) if row["cycles"] and not row["bound_alone"]]
    if rows:
        names = ", ".join(f"'{row['layer']}' ({row['kind']}, {row['cycles']} cycles)" for row in rows[:3])
        raise CheckError("no bound", f"{len(rows)} rows have none: {names}")


def twice_the_batch(trial: Trial) -> None:
    """Twice the batch takes little more than twice the time."""
    once = trial.timing
    if once.seconds < LEAST:
        raise NotAskedError("starts of commands are most of the time")
    twice = timing_of(trial.of_twice)
    if twice.cycles > TWICE * once.cycles:
        by = _grown(once, twice)
        text = f"{once.cycles:,} cycles, twice the batch {twice.cycles:,}: {twice.cycles / once.cycles:.2f} times; {by}"
        raise CheckError("twice the batch", text)


def integers_are_not_slower(trial: Trial) -> None:
    """At level 2 an int8 program takes no longer than those in float.

    Below it what turns integers into floats and back is a layer by itself, whose values go through global memory: of
    networks on tokens that costs more than their products gain, as docs/performance.md says.
    """
    if trial.level < 2:
        raise NotAskedError("not promised at this level")
    if trial.precision != "int8" or trial.chip not in FLOATS:
        raise NotAskedError("no float beside it")
    integers = trial.timing
    if integers.seconds < LEAST:
        raise NotAskedError("starts of commands are most of the time")
    for precision in FLOATS[trial.chip]:
        floats = timing_of(trial.compiled_anew(quantize=precision, check="never"))
        if integers.cycles > floats.cycles:
            by = _grown(floats, integers)
            text = f"{integers.cycles:,} cycles in int8, {floats.cycles:,} in {precision}; {by}"
            raise CheckError("int8 slower", text)


def _grown(before: Timing, after: Timing) -> str:
    """The layer whose time grew most."""
    old = {(layer.name, layer.kind): layer.cycles for layer in before.layers}
    grown = {each: each.cycles - old.get((each.name, each.kind), 0) for each in after.layers}
    most = max(grown, key=grown.__getitem__)
    return f"'{most.name}' ({most.kind}) {grown[most]:,} more"
