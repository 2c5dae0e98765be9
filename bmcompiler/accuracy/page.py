"""The study as one self-contained page: error along the net, culprits, a histogram per layer."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from math import log10

import numpy as np

from bmcompiler.accuracy.statistics import LayerNumbers
from bmcompiler.accuracy.study import Study
from bmcompiler.options import Options
from bmcompiler.report.svg import line, svg, title, words
from bmcompiler.report.tables import Cell, Heading, bullets, framed, made, table, text
from bmcompiler.told import said
from bmcompiler.version import version

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 1100, 270, 112, 24, 46
_FLOOR = 1e-5
_BARS = 64


def accuracy_page(found: Study, net: str, request: Options) -> str:
    """HTML of a study that was asked for."""
    chip = " ".join(filter(None, (request.target, request.quantize)))
    options = {name: words for name, words in said(request).items() if name != "target"}
    body = [
        f"<h1>{escape(net)} <small>accuracy on {escape(chip)}</small></h1>",
        made(f"bmcompiler {version()}", options),
        _tiles(found),
        "<h2>Error along the net</h2>",
        _course(found),
        "<h2>Layers</h2>",
        _layers(found),
        "<h2>Codes of each layer</h2>",
        "<p class='legend'>How often each code occurs (logarithmic); the ends of the range are the codes at the sides."
        "</p>",
        _histograms(found),
        bullets("Notes", found.notes),
    ]
    return framed(f"accuracy of {net}", "\n".join(body))


def _tiles(found: Study) -> str:
    facts = [("error of the outputs", f"{found.error:.2%}", "worst output, channels weighed alike")]
    for name, numbers in found.numbers.outputs.items():
        if numbers.signal is not None:
            worst = int(np.argmax(numbers.channel_errors))
            more = f"channel {worst}: {float(numbers.channel_errors[worst]):.2%}"
            facts.append((f"output {name}", f"{numbers.error:.2%}", more))
    cells = "".join(
        f"<div><span>{escape(name)}</span><b>{escape(value)}</b><i>{escape(more)}</i></div>"
        for name, value, more in facts
    )
    return f'<section class="tiles">{cells}</section>'


def _course(found: Study) -> str:
    """Bars for the harm of each layer alone, a line for the error that has added up."""
    rows = [found.numbers.layers[layer.name] for layer in found.pair.layers]
    if not rows:
        return ""
    step = (_WIDTH - _LEFT) / len(rows)

    def height(error: float) -> float:
        span = log10(1 / _FLOOR)
        return (_HEIGHT - _TOP - _BOTTOM) * (log10(min(max(error, _FLOOR), 1.0) / _FLOOR) / span)

    ground = _HEIGHT - _BOTTOM
    parts = []
    for power in range(-5, 1):
        y = ground - height(10.0**power)
        parts += [line(_LEFT, y, _WIDTH, y, "grid"), words(_LEFT - 6, y + 4, f"{10.0 ** (power + 2):g}%", "end")]
    points = []
    for number, row in enumerate(rows):
        x, tall = _LEFT + number * step, height(row.output_error or 0.0)
        told = title(f"{row.layer.name}: alone {row.output_error or 0:.3%} at the outputs, {row.error:.3%} here")
        parts.append(
            f'<rect class="a" x="{x:.1f}" y="{ground - tall:.1f}" width="{max(step - 1, 0.7):.1f}" '
            f'height="{tall:.1f}">{told}</rect>'
        )
        points.append((x + step / 2, ground - height(row.error)))
    for (x1, y1), (x2, y2) in pairwise(points):
        parts.append(line(x1, y1, x2, y2, "roof"))
    told = "bars: what the layer alone does to the outputs; line: error of its result"
    parts.append(words(_LEFT, _HEIGHT - 10, told))
    return f'<div class="scroll">{svg(_WIDTH, _HEIGHT, "".join(parts), "error along the net")}</div>'


_HEADINGS: tuple[Heading, ...] = (
    ("rank", "n", "Place among the culprits."),
    ("layer", "t long", "The tensor in the source file."),
    ("op", "t", "What is computed."),
    ("alone", "n", "Error of the outputs when this layer alone is quantized."),
    ("dB", "n", "Signal to quantization noise of its result, errors of the layers before included."),
    ("codes", "n", "Share of the 256 codes that occur."),
    ("at the ends", "n", "Share of values at the ends of the range."),
    ("likely cause", "t long", "What stands out."),
)


def _layers(found: Study) -> str:
    rank = {name: number for number, name in enumerate(found.ranking, 1)}
    rows = []
    for name, row in found.numbers.layers.items():
        codes = row.used_codes
        cells: list[Cell] = [
            (str(rank[name]), rank[name]),
            text(name),
            text(row.layer.kind),
            ("" if row.output_error is None else f"{row.output_error:.3%}", row.output_error or 0.0),
            (f"{row.sqnr:.1f}", row.sqnr),
            ("float" if codes is None else f"{codes:.0%}", 2.0 if codes is None else codes),
            ("" if codes is None else f"{row.saturated_share:.2%}", row.saturated_share),
            text(found.causes[name]),
        ]
        rows.append(cells)
    return table(_HEADINGS, rows)


def _histograms(found: Study) -> str:
    return (
        "<div class='groups'>"
        + "".join(
            f"<div class='group'><span>{escape(name)}</span>{_histogram(row)}</div>"
            for name, row in found.numbers.layers.items()
            if row.codes is not None
        )
        + "</div>"
    )


def _histogram(row: LayerNumbers) -> str:
    assert row.codes is not None, "only tensors with codes have a histogram"
    counts = np.log1p(row.codes.reshape(_BARS, -1).sum(axis=1))
    tall = 50 * counts / max(float(counts.max()), 1e-9)
    bars = "".join(
        f'<rect class="{"s" if number in (0, _BARS - 1) else "a"}" x="{3 * number}" y="{50 - height:.1f}" width="2.4" '
        f'height="{height:.1f}"/>'
        for number, height in enumerate(tall)
    )
    return svg(3 * _BARS, 50, bars + title(row.layer.name), f"codes of {row.layer.name}")
