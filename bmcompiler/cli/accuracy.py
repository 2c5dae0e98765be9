"""bmnet-accuracy: where a network loses accuracy on a chip, layer by layer, and what would help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bmcompiler.cli.common import Number, Output, command_line, format_table, printable, progress
from bmcompiler.cli.inputs import FORMULA
from bmcompiler.cli.options import TargetOption, options
from bmcompiler.cli.quiet import quiet_option
from bmcompiler.cli.stdio import STDIO, piped
from bmcompiler.text import percent

if TYPE_CHECKING:
    from bmcompiler.accuracy.study import Study
    from bmcompiler.options import Network

_EPILOG = f"""
\b
Examples:
  bmnet-accuracy net.onnx --target CHIP --data calib.npz
  bmnet-accuracy deploy.prototxt net.caffemodel --target CHIP --data calib.npz --html accuracy.html
  bmnet-accuracy net.onnx --target CHIP --data calib.npz --suggest net.modes
  bmnet-compile  net.onnx --target CHIP --data calib.npz --quant-table net.modes

A layer's "alone" is the error of the outputs when it alone is quantized and all others are float. --suggest keeps the
worst of them in float, as few as bring the outputs within --max-error, checks that, and writes a table. --dump-layers
writes an .npz for every layer: `float` and `device` values of the samples as real numbers, and `codes` as the chip has
them, the same that its commands compute.
{FORMULA}"""


@click.command(epilog=_EPILOG, context_settings={"max_content_width": 110})
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("weights", required=False, type=click.Path(path_type=Path))
@options(
    *("target", "data", "images", "limit", "quantize", "shapes", "outputs", "table", "method", "quant_table"),
    *("decisions", "fuse_preprocess"),
    target={"cls": TargetOption, "required": True, "default": None},
    quantize={"help": "Precision  [default: int8]"},
    quant_table={"type": click.Path(path_type=Path, exists=True)},
)
@click.option("--samples", type=click.IntRange(1), default=8, show_default=True, help="Samples that are compared.")
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="Layers in the printed table.")
@click.option(
    "--max-error",
    metavar="PERCENT",
    type=Number(0, min_open=True),
    default=2.0,
    show_default=True,
    help="How far --suggest lets outputs be from float.",
)
@click.option("--suggest", metavar="TABLE", type=Output(path_type=Path), help="Write a quantization table.")
@click.option(
    "--dump-layers", metavar="DIR", type=Output(folder=True, path_type=Path), help="Write every layer's values, .npz."
)
@click.option("--report", "html", metavar="FILE.html", type=Output(path_type=Path), help="Write a page with pictures.")
@quiet_option
def cli(
    *,
    model: Path,
    weights: Path | None,
    samples: int,
    top: int,
    max_error: float,
    suggest: Path | None,
    dump_layers: Path | None,
    html: Path | None,
    **given: Any,
) -> None:
    """Compare MODEL in float with what CHIP computes, layer by layer, and name the culprits."""
    from bmcompiler.accuracy.page import accuracy_page
    from bmcompiler.accuracy.study import study
    from bmcompiler.cli.inputs import one_source
    from bmcompiler.errors import BMError, UsageError
    from bmcompiler.files.kinds import PAGE, TABLE
    from bmcompiler.files.store import check_output
    from bmcompiler.options import Options
    from bmcompiler.target import find_target

    for path, kind in ((suggest, TABLE), (html, PAGE)):
        if path is not None:
            check_output(path, kind)
    request = Options(**given)
    one_source("--data", given["data"], request.images)
    request.quantize = request.quantize or ("int8" if "int8" in find_target(request.target).precisions else None)
    if suggest is not None and not _has_tables(request):
        raise UsageError(f"{request.target} takes no quantization table", remedy="leave out --suggest")
    network, name = piped(model), "the network" if str(model) == STDIO else model.stem
    try:
        found = study(network, weights, request, samples=samples, dump=dump_layers, progress=progress)
        click.echo(_text(found, top), nl=False)
        if html is not None:
            from bmcompiler.files.store import atomic_output

            with atomic_output(html, PAGE) as stream:
                stream.write(accuracy_page(found, printable(name), request))
            click.echo(f"wrote {html}")
        if suggest is not None:
            _suggest(found, network, weights, request, suggest, max_error / 100, samples)
    except BMError as error:
        raise error.located(file="the network" if str(model) == STDIO else model) from None


def _has_tables(options: object) -> bool:
    from bmcompiler.accuracy.study import takes_table
    from bmcompiler.options import Options
    from bmcompiler.target import find_target

    assert isinstance(options, Options), "the command has made them"
    return takes_table(find_target(options.target), options)


def _text(found: Study, top: int) -> str:
    rows = []
    for number, name in enumerate(found.ranking[:top], 1):
        row = found.numbers.layers[name]
        alone = "" if row.output_error is None else percent(row.output_error)
        codes = "float" if row.used_codes is None else f"{row.used_codes:.0%}"
        rows.append((number, name, row.layer.kind, alone, f"{row.sqnr:.1f}", codes, found.causes[name]))
    text = format_table(("", "layer", "op", "alone", "dB", "codes", "likely cause"), rows)
    outputs = [
        (name, percent(each.error), percent(float(each.channel_errors.max())))
        for name, each in found.numbers.outputs.items()
        if each.signal is not None
    ]
    kept = [
        (name, f"{count.share:.1%}", count.of, found.numbers.judge.said(name))
        for name, count in found.numbers.kept.items()
    ]
    decided = "\n" + format_table(("output", "decisions kept", "of", ""), kept) if kept else ""
    return text + "\n" + format_table(("output", "error", "worst channel"), outputs) + decided


def _suggest(
    found: Study, model: Network, weights: Path | None, options: object, path: Path, max_error: float, samples: int
) -> None:
    """Write a table that brings the outputs nearer to float, and say how near; none where none does."""
    import tempfile

    from bmcompiler.accuracy.study import confirmed, study, with_table, write_suggestion
    from bmcompiler.options import Options

    assert isinstance(options, Options), "the command has made them"
    with tempfile.TemporaryDirectory() as folder:

        def trial(layers: list[str]) -> Study:
            table = Path(folder) / "trial.modes"
            write_suggestion(found, layers, table)
            return study(
                *(model, weights, with_table(options, table)), samples=samples, culprit_samples=0, progress=progress
            )

        best = confirmed(found, trial, max_error)
    if best is None:
        why = "" if found.error <= max_error else ", and no table that was tried brings them nearer"
        click.echo(f"nothing to suggest: the outputs are {found.error:.2%} from float{why}")
        return
    layers, after = best
    write_suggestion(found, layers, path)
    click.echo(
        printable(
            f"{len(layers)} of {len(found.ranking)} layers in float: the outputs are {after.error:.2%} from float, "
            f"{found.error:.2%} without\nwrote {path}",
            keep_lines=True,
        )
    )


main = command_line(cli, "bmnet-accuracy")
