"""Compile reports: what the summary says and more, as JSON and CSV for tools and as one HTML page for people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bmcompiler.errors import UsageError
from bmcompiler.files.kinds import JSON, PAGE, TEXT
from bmcompiler.files.store import StrPath, atomic_output, check_output
from bmcompiler.report.data import report_data
from bmcompiler.report.text import csv_text, json_text
from bmcompiler.result import Result

__all__ = ["check_report", "report_csv", "report_data", "report_html", "report_json", "write_report"]


def report_json(result: Result, profile: Any = None) -> str:
    """The report as JSON text."""
    return json_text(report_data(result, profile))


def report_csv(result: Result, profile: Any = None) -> str:
    """The layers as comma-separated values, one line each after a line of headings."""
    return csv_text(report_data(result, profile))


def report_html(result: Result, profile: Any = None) -> str:
    """The report as one page without outside resources; tables sort by a click on a heading."""
    from bmcompiler.report.page import page

    return page(report_data(result, profile))


_RENDERERS = {".json": (report_json, JSON), ".html": (report_html, PAGE), ".csv": (report_csv, TEXT)}


def check_report(path: StrPath) -> None:
    """To be asked before long work: raises UsageError for names that no kind of report has, and what writing raises."""
    _check_ending(path)
    check_output(path, _RENDERERS[Path(path).suffix.lower()][1])


def _check_ending(path: StrPath) -> None:
    if Path(path).suffix.lower() not in _RENDERERS:
        raise UsageError(f"a report must end in .html, .json or .csv, got '{path}'")


def write_report(result: Result, path: StrPath, profile: Any = None) -> None:
    """Write the report of a compilation; the ending of `path` (.html, .json or .csv) says which.

    Args:
        profile: parameters for the timing model, see `bmcompiler.analysis.estimate`.

    Raises:
        UsageError: another ending.
        OSError: the file cannot be written; an existing one stays as it was.
    """
    _check_ending(path)
    render, kind = _RENDERERS[Path(path).suffix.lower()]
    text = render(result, profile)
    with atomic_output(path, kind) as stream:
        stream.write(text)
