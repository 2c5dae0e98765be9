"""bmnet-doctor: does a model fit a board, and is this installation whole?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bmcompiler.cli.common import command_line, format_table, printable
from bmcompiler.cli.stdio import read_model

if TYPE_CHECKING:
    from bmcompiler.bmodel import BModel
    from bmcompiler.doctor import Finding

_EPILOG = """
\b
Examples:
  bmnet-doctor
  bmnet-doctor net.bmodel
  bmnet-doctor net.bmodel --board board.toml

FACTS is a TOML or JSON file of what is known of a board, any of: chip = "CHIP", memory = "4 GB" (for networks, as
bm-smi says), runtime = "0.4.8" (its version). What neither file says nor is publicly known is listed as unknown. The
exit status is 1 when something does not fit.
"""


@click.command(epilog=_EPILOG, context_settings={"max_content_width": 110})
@click.argument("model", required=False, metavar="[MODEL.bmodel]", type=click.Path(path_type=Path))
@click.option("--board", metavar="FACTS", type=click.Path(path_type=Path), help="What is known of the board.")
@click.option("--sources", is_flag=True, help="Print where each fact is written.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def cli(*, model: Path | None, board: Path | None, sources: bool, as_json: bool) -> int:
    """Say whether MODEL fits a board and its runtime, and whether this installation is whole."""
    from bmcompiler.doctor.board import Board, read_board
    from bmcompiler.doctor.installation import examine_installation
    from bmcompiler.errors import UsageError

    if board is not None and model is None:
        raise UsageError("--board is about a model, and none is given")
    facts = Board() if board is None else read_board(board)
    found = {"installation": list(examine_installation())}
    if model is not None:
        from bmcompiler.doctor.model import examine

        loaded = read_model(model)
        found = {str(model): list(examine(loaded, facts))} | found
    if as_json:
        shown = {title: [vars(each) for each in findings] for title, findings in found.items()}
        click.echo(json.dumps(shown, indent=2))
    else:
        for title, findings in found.items():
            click.echo(f"{printable(title)}\n{_table(findings, sources)}")
            if title == str(model):
                click.echo(_io(loaded))
    wrong = [each for findings in found.values() for each in findings if each.state == "wrong"]
    if wrong and not as_json:
        click.echo(f"does not fit: {', '.join(printable(each.what) for each in wrong)}")
    return int(bool(wrong))


def _table(findings: Sequence[Finding], sources: bool) -> str:
    rows = [(each.what, each.state, printable(each.text), *([each.source] if sources else [])) for each in findings]
    return format_table(("what", "state", "found", *(["source"] if sources else [])), rows)


def _io(model: BModel) -> str:
    """Inputs, outputs and how pictures become them, as `bmnet-tool info` says it."""
    from bmcompiler.cli.tool import pictures_of, tensor_line

    lines = []
    for stage in model.stages():
        lines += [tensor_line("input", tensor) for tensor in stage.inputs]
        lines += [tensor_line("output", tensor) for tensor in stage.outputs]
        said = printable(pictures_of(stage)) if stage.pictures else "the file does not say how they become the input"
        lines.append(f"pictures: {said}")
    return "\n".join(lines) + "\n"


main = command_line(cli, "bmnet-doctor")
