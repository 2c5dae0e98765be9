"""The table of scores in docs/accuracy.md: read and written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tasks.networks import NETWORKS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"
CHIPS = ("bm1684", "bm1684x", "bm1880")
MAY_LOSE = {"bm1684": 0.5, "bm1684x": 0.5, "bm1880": 1.0}
"""Points that int8 may be below float32; a score is 0 to 100 points."""
MAY_MOVE = 0.3
"""Points that a score may be below that of the table."""
_SLACK = 1e-9
"""Of differences of floats."""
_HEAD = "| network | task | float32 | ORT int8 | BM1684 int8 |"
"""How its first line begins."""


@dataclass(frozen=True)
class Row:
    """Scores of a network, 0 to 100: float32, ONNX Runtime's int8 (None: it does not read the file), ours by chip."""

    float32: float
    elsewhere: float | None
    scores: Mapping[str, float]
    cycles: tuple[float, float]


def text(name: str, row: Row) -> str:
    net = NETWORKS[name]
    other = "" if row.elsewhere is None else f"{row.elsewhere:.1f}"
    cells = [net.title, net.task, f"{row.float32:.1f}", other, *(f"{row.scores[chip]:.1f}" for chip in CHIPS)]
    return f"| {' | '.join(cells)} | {row.cycles[0]:.2f}, {row.cycles[1]:.2f} |".replace("|  |", "| |")


def write(rows: Mapping[str, Row], page: Path = PAGE) -> None:
    """Put a row for each of these networks into the table of the page; rows of others stay."""
    titles = {NETWORKS[name].title: text(name, row) for name, row in rows.items()}
    lines = page.read_text(encoding="utf-8").splitlines()
    for k in _places(lines):
        title = _cells(lines[k])[0]
        lines[k] = titles.pop(title, lines[k])
    if titles:
        raise SystemExit(f"{page.name}: the table of scores has no row for {', '.join(titles)}; write one first")
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def kept(page: Path = PAGE) -> dict[str, dict[str, float]]:
    """Network -> chip -> score of the page; chips without one, which has not been measured, are left out."""
    names = {net.title: net.name for net in NETWORKS.values()}
    lines = page.read_text(encoding="utf-8").splitlines()
    rows = [_cells(lines[k]) for k in _places(lines)]
    return {names[row[0]]: {chip: float(cell) for chip, cell in zip(CHIPS, row[4:7]) if cell} for row in rows}


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _places(lines: list[str]) -> Iterable[int]:
    """The numbers of the lines of the table, without its head."""
    place = next(k for k, line in enumerate(lines) if line.startswith(_HEAD)) + 2
    while lines[place].startswith("|"):
        yield place
        place += 1


def keeps(chip: str, score: float, float32: float) -> bool:
    """Whether a score, 0 to 100, is as near to that of float32 as the chip's may be."""
    return score >= float32 - MAY_LOSE[chip] - _SLACK


def complaints(name: str, chip: str, score: float, float32: float, kept_score: float | None) -> list[str]:
    """Sentences on a score that is too low; None: the page has none."""
    said, what = [], f"{name} on {chip}: {score:.1f}"
    if not keeps(chip, score, float32):
        said.append(f"{what} is more than {MAY_LOSE[chip]} points below float32, {float32:.1f}")
    if kept_score is not None and score < kept_score - MAY_MOVE - _SLACK:
        said.append(f"{what} is more than {MAY_MOVE} points below {PAGE.name}, {kept_score:.1f}")
    return said
