"""Summary, JSON, CSV and page of one compilation list the same layers."""

from __future__ import annotations

import csv
import io
import re

from bmcompiler.report import report_data
from bmcompiler.report.page import page
from bmcompiler.report.summary import layer_tables, summary
from bmcompiler.report.text import csv_text
from bmcompiler.result import Result


def assert_forms_agree(result: Result) -> None:
    data = report_data(result)
    html = page(data)
    table = html[html.index('<table class="layers">') :]
    printed = layer_tables(result).split("\n\n", 1)[0].splitlines()[2:]
    (claimed,) = re.findall(r"^layers +(\d+)", summary(result), re.MULTILINE)
    counts = {
        "rows": len(result.rows),
        "summary": int(claimed),
        "table": len(printed),
        "json": len(data["layers"]),
        "csv": len(list(csv.DictReader(io.StringIO(csv_text(data))))),
        "html": table[: table.index("</table>")].count("<tr>") - 1,
    }
    assert len(set(counts.values())) == 1, counts
    if data["timing"] is not None:
        timed = sum(row["cycles"] for row in (*data["layers"], *data["other_commands"]))
        assert timed == data["timing"]["cycles"]
