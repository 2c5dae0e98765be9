"""A model file beside a board and the vendor's runtimes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bmcompiler.doctor import Finding, facts
from bmcompiler.doctor.board import Board
from bmcompiler.doctor.facts import LIBRARY, MEMORY, OTHER_BRANCHES, RUNTIMES, SAME_CHIP, Runtime
from bmcompiler.spelling import spelled

if TYPE_CHECKING:
    from bmcompiler.bmodel import BModel

_MEGA = 1 << 20


def examine(model: BModel, board: Board) -> Iterator[Finding]:
    """All that can be said of a model on a board, with reasons where that is nothing."""
    chip = str(model.summary["chip"]).upper()
    yield Finding("container", "ok", _container(model))
    yield _chip(chip, board)
    yield from _runtimes(model, chip, board)
    yield _memory(model, chip, board)
    yield _precision(model)
    yield _dynamic(model)


def _container(model: BModel) -> str:
    return ", ".join(f"{key} {value}" for key, value in model.summary.items() if key not in ("chip", "producer"))


def _chip(chip: str, board: Board) -> Finding:
    if board.chip is None:
        return Finding("chip", "unknown", f"{chip}; the board's is not said", facts.CHIP_CHECK)
    found = board.chip.upper()
    fits = SAME_CHIP.get(chip, chip) == SAME_CHIP.get(found, found)
    text = f"{chip}, as the board's"
    if not fits:
        text = f"{chip}, the board's is {found}: compile with {spelled('target', found.lower())}"
    return Finding("chip", "ok" if fits else "wrong", text, facts.CHIP_CHECK)


def _runtimes(model: BModel, chip: str, board: Board) -> Iterator[Finding]:
    known = any(chip in (runtime.chips or ()) for runtime in RUNTIMES)
    if not known or "bmodel version" not in model.summary:
        yield Finding("runtime", "unknown", f"nothing is known of runtimes that take this kind of file for the {chip}")
        return
    modes = {stage.address_mode or "basic" for stage in model.stages()}
    wanted = [runtime for runtime in RUNTIMES if board.runtime in (None, runtime.version)]
    yield from (_runtime(runtime, chip, modes) for runtime in wanted)
    if not wanted:
        about, source = OTHER_BRANCHES.get(str(board.runtime), ("was not looked into", ""))
        yield Finding("runtime", "unknown", f"{LIBRARY} {board.runtime} {about}", source)
    text = f"{model.summary['bmodel version']}; no version that was looked into compares it"
    yield Finding("file version", "ok", text, facts.VERSION_CHECK)


def _runtime(runtime: Runtime, chip: str, modes: set[str]) -> Finding:
    name = f"{LIBRARY} {runtime.version}"
    if runtime.chips is None:
        return Finding("runtime", "unknown", f"{name}: whether it has the {chip} is not known", runtime.source)
    if chip not in runtime.chips:
        return Finding("runtime", "wrong", f"{name} has no {chip}", runtime.source)
    if modes == {"basic"}:
        return Finding("runtime", "ok", f"{name} takes it", runtime.source)
    shown = ", ".join(sorted(modes))
    if runtime.modes is None:
        return Finding("runtime", "unknown", f"{name}: whether it has addr_mode {shown} is not known", runtime.source)
    missing = ", ".join(sorted(modes - set(runtime.modes)))
    text = f"{name} has no addr_mode {missing}" if missing else f"{name} has addr_mode {shown}"
    return Finding("runtime", "wrong" if missing else "ok", text, runtime.source)


def device_bytes(model: BModel) -> int:
    """Device memory with all nets loaded: weights once, all commands, per net its largest working and io memory."""
    stages = model.stages()
    largest: dict[str, int] = {}
    for stage in stages:
        largest[stage.net] = max(largest.get(stage.net, 0), stage.neuron_size + stage.io_size)
    weights = sum(len(block) for block in model.weight_sets)
    return weights + sum(stage.instruction_size for stage in stages) + sum(largest.values())


def _memory(model: BModel, chip: str, board: Board) -> Finding:
    needed = device_bytes(model)
    shown = f"{needed / _MEGA:,.1f} MB"
    if board.memory is not None:
        fits = needed <= board.memory
        text = f"{shown} of the board's {board.memory / _MEGA:,.0f} MB"
        return Finding("memory", "ok" if fits else "wrong", text if fits else f"{text}: too much")
    usual = MEMORY.get(SAME_CHIP.get(chip, chip))
    if usual is None:
        return Finding("memory", "unknown", f"{shown}; the board's is not said")
    if needed <= usual.most:
        return Finding("memory", "ok", f"{shown}; {usual.text}, your board's is not said", usual.source)
    return Finding("memory", "unknown", f"{shown}, more than usual: {usual.text}", usual.source)


def _precision(model: BModel) -> Finding:
    said = [part for part in model.producer.split(", ") if part.startswith("precision ")]
    if said:
        return Finding("precision", "ok", said[0].removeprefix("precision "))
    ends = sorted({tensor.dtype for stage in model.stages() for tensor in (*stage.inputs, *stage.outputs)})
    return Finding("precision", "unknown", f"the file does not say it; inputs and outputs are {', '.join(ends)}")


def _dynamic(model: BModel) -> Finding:
    nets = sorted({stage.net for stage in model.stages() if stage.dynamic})
    if not nets:
        return Finding("firmware", "ok", "static: the commands are in the file")
    return Finding(
        "firmware", "unknown", f"{', '.join(nets)} dynamic: it depends on the board's firmware", facts.DYNAMIC
    )
