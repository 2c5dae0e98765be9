"""The part of the page that says how far a quantized network is from float."""

from __future__ import annotations

from typing import Any

from bmcompiler.evaluation.confidence import SURE
from bmcompiler.report.tables import Cell, Heading, table, text
from bmcompiler.text import at_least, at_most, percent

Data = dict[str, Any]
_OUTPUTS: tuple[Heading, ...] = (
    ("output", "t long", ""),
    ("error", "n", "Relative, Euclidean."),
    ("worst channel", "n", "Its number and its own relative error."),
)
_DECISIONS: tuple[Heading, ...] = (
    ("output", "t long", ""),
    ("decisions kept", "n", "Share of float's decisions."),
    ("of", "n", ""),
    ("what", "t", ""),
    ("of others at least", "n", f"With a confidence of {SURE:.0%}; nothing on samples of calibration."),
)
_WORST: tuple[Heading, ...] = (
    ("least exact layers", "t long", "Those that add most error to what they read."),
    ("op", "t", ""),
    ("dB", "n", "Signal to quantization noise of the result."),
    ("codes", "n", "Share of the 256 codes that occur."),
    ("likely cause", "t long", ""),
)


def accuracy_section(data: Data) -> str:
    """Errors of outputs and layers; nothing for networks that were not quantized with samples."""
    found = data["accuracy"]
    if found is None:
        return ""
    outputs = [
        [text(each["name"]), (percent(each["error"]), each["error"]), _channel(each)] for each in found["outputs"]
    ]
    worst = [
        [
            text(each["layer"]),
            text(each["op"]),
            (f"{each['sqnr']:.1f}", each["sqnr"]),
            _codes(each),
            text(each["cause"]),
        ]
        for each in found["worst"]
    ]
    of = "samples held back from calibration" if found["unseen"] else "of the calibration samples"
    others = (
        "" if found["at_most"] is None
        else f"; outputs of others are at most {at_most(found['at_most'])} from float, with a confidence of {SURE:.0%}"
    )  # fmt: skip
    heading = f"<h2>Difference from float</h2><p class='legend'>on {found['samples']} {of}{others}</p>"
    return heading + table(_OUTPUTS, outputs) + _decided(found) + "<p></p>" + table(_WORST, worst)


def _decided(found: Data) -> str:
    rows = [
        [text(each["name"]), (f"{each['kept'] / each['of']:.1%}", each["kept"] / each["of"]), text(str(each["of"])),
         text(each["what"]), (at_least(each["least"]), each["least"] or 0.0)]
        for each in found["decisions"] if each["of"]
    ]  # fmt: skip
    return "<p></p>" + table(_DECISIONS, rows) if rows else ""


def _channel(each: Data) -> Cell:
    return f"{each['channel']}: {percent(each['channel_error'])}", each["channel_error"]


def _codes(each: Data) -> Cell:
    used = each["used_codes"]
    return ("float", 2.0) if used is None else (f"{used:.0%}", used)
