"""bmnet-compile: a Caffe, ONNX or MLIR network to a .bmodel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from bmcompiler import defaults
from bmcompiler.cli.common import Output, command_line, printable, progress
from bmcompiler.cli.inputs import FORMULA
from bmcompiler.cli.options import TargetOption, list_parameters, list_plugins_option, options, worker_options
from bmcompiler.cli.quiet import QUIET
from bmcompiler.cli.reference_test import ReferenceTest, reference_options
from bmcompiler.cli.stdio import STDIO
from bmcompiler.options import Options

_EPILOG = f"""
\b
Examples:
  bmnet-compile deploy.prototxt net.caffemodel --target {defaults.TARGET} --data calib.npz
  bmnet-compile net.onnx --target {defaults.TARGET} --images photos --mean 123.7,116.3,103.5 --scale 0.0171
  bmnet-compile yolo.onnx --target {defaults.TARGET} --letterbox --std 255
  bmnet-compile yolo.onnx --target {defaults.TARGET} --letterbox --std 255 --fuse-preprocess bgr-nhwc
  bmnet-compile net.onnx --target {defaults.TARGET} --calibration-table net.table -o net.bmodel
  bmnet-compile net.onnx --target {defaults.TARGET} --shapes "[[1,3,96,96]]" --shapes "[[1,3,192,192]]" --data calib.npz
  bmnet-compile net.onnx --target {defaults.TARGET} --data calib.npz --test-input in.npz --test-reference out.npz
  bmnet-compile bert.onnx --target {defaults.TARGET} --data calib.npz --shapes "[[1,n={{32,64,128}}],[1,n]]"
  bmnet-compile net.onnx --target {defaults.TARGET} --data calib.npz --report net.html --timing-profile clock_hz=5e8

Calibration samples are values as the net was trained on.
{FORMULA}"""


@click.command(epilog=_EPILOG, context_settings={"max_content_width": 110})
@click.argument("model", required=False, metavar="MODEL", type=click.Path(path_type=Path))
@click.argument("weights", required=False, type=click.Path(path_type=Path))
@options("target", target={"cls": TargetOption, "required": True, "default": None})
@click.option(
    "-o",
    "--output",
    type=Output(path_type=Path, stdio=True),
    help="Model file to write, - for stdout [default: NAME.bmodel].",
)
@options(
    *("name", "shapes", "quantize", "data", "images", "preprocess", "limit", "table", "method", "quant_table"),
    *("io_dtype", "max_error", "decisions", "max_cycles", "fuse_preprocess"),
    shapes={
        "multiple": True,
        "help": 'Input shapes, "[[1,3,224,224]]". Several programs in a file: ranges and sets, "[[1..16,3,224,224]]", '
        '"[[1,n={32,64,128}],[1,n]]", "[[1,3,320..640:32,640]]", "[[1,32..256:*2]]", or the option repeated.',
    },
)
@worker_options
@options("outputs", "opt", "pipeline", "print_ir_after", "verify_each", "save_ir")
@click.option("--report", type=Output(path_type=Path), help="Write a report (.html, .json, or .csv of the layers).")
@options("check", "keep_bad", "timing_profile")
@reference_options
@click.option("--layers", is_flag=True, help="Print a table of all layers, all reasons and all notes, too.")
@click.option("--quiet", is_flag=True, help=QUIET)
@list_plugins_option
def cli(
    *,
    model: Path | None,
    weights: Path | None,
    output: Path | None,
    workers: int,
    scheduler: str | None,
    report: Path | None,
    timing_profile: tuple[str, ...],
    test_input: Path | None,
    test_reference: Path | None,
    tolerance: tuple[float, float] | None,
    layers: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Compile MODEL (.onnx, .prototxt with its .caffemodel as WEIGHTS, or .mlir) for an accelerator.

    MODEL - is an ONNX network on standard input.
    """
    from bmcompiler.driver import compile_network
    from bmcompiler.files.kinds import MODEL, TABLE, TEXT
    from bmcompiler.files.overwriting import refuse_overwriting
    from bmcompiler.files.store import check_output, file_name
    from bmcompiler.parallel import open_pool

    request = Options(**given, log=lambda text: click.echo(text, err=True), progress=progress)
    if request.pipeline == "help":
        _list_passes(request.target, request.quantize, request.opt)
        return
    if "help" in timing_profile:
        list_parameters(request.target)
        return
    if model is None:  # only lists do without one
        raise click.UsageError("Missing argument 'MODEL'.", click.get_current_context())
    profile = None
    if timing_profile:
        from bmcompiler.analysis.timing_profile import profile_for

        request.timing_profile = profile = profile_for(request.target, timing_profile)
    if report is not None:
        from bmcompiler.report import check_report

        check_report(report)
    asked = any(each is not None for each in (test_input, test_reference, tolerance))
    test = ReferenceTest(test_input, test_reference, tolerance) if asked else None
    modes = request.quant_table
    table_to_write = modes if modes is not None and not Path(modes).exists() else None
    piped = str(output) == STDIO
    first = None if piped else output or Path(file_name(request.name or model.stem) + ".bmodel")
    refuse_overwriting([first, table_to_write], [model, weights, given["data"], request.table])
    for path, kind in ((first, MODEL), (request.save_ir, TEXT), (table_to_write, TABLE)):
        if path is not None:
            check_output(path, kind)
    with open_pool(workers, scheduler) as request.pool:
        result = compile_network(sys.stdin.buffer.read() if str(model) == STDIO else model, weights, request)
    tested = "" if test is None else test.table(result)
    path = output or Path(file_name(result.model.stages()[0].net) + ".bmodel")
    if piped:
        sys.stdout.buffer.write(result.to_bytes())
    else:
        result.save(path)
    if report is not None:
        from bmcompiler.report import write_report

        write_report(result, report, profile)
    if quiet:
        for warning in result.warnings:
            click.echo(printable(warning), err=True)
    else:
        from bmcompiler.report.summary import layer_tables, summary

        if layers:
            click.echo(layer_tables(result), err=piped)
        click.echo(summary(result, profile) + tested, nl=False, err=piped)
        seconds = sum(seconds for _, seconds in result.timing)
        if not piped:
            click.echo(f"wrote {path} ({path.stat().st_size:,} bytes) in {seconds:.1f} s")


def _list_passes(name: str, precision: str | None, level: int) -> None:
    """Print a chip's passes with the reasons for their order, the pipeline to edit, and all passes with options."""
    from bmcompiler.cli.common import format_table
    from bmcompiler.passmanager import describe_options, installed_passes
    from bmcompiler.target import find_target

    target = find_target(name)
    wanted = precision or target.precisions[0]
    text = target.pipeline(wanted, level)
    rows = [
        (phase, row.text, " ".join(map(str, row.levels)), " ".join(row.precisions or target.precisions), row.why)
        for phase, row in target.passes
    ]
    click.echo(f"The passes of {name} in their order, at the levels of --opt and the precisions of --quantize:\n")
    click.echo(format_table(("phase", "pass", "levels", "precisions", "why here"), rows))
    click.echo(f"--quantize {wanted} --opt {level}: {text}\n")
    every = list(installed_passes())
    for each in every:
        if each.parts:
            click.echo(f"{each.name} runs, in turn until none changes anything:\n")
            click.echo(format_table(("pass", "why here"), [(row.text, row.why) for row in each.parts]))
    click.echo("All passes, with their options and defaults, and what they need:\n")
    for each in every:
        click.echo(f"{each.name}: {describe_options(each)}")
        if each.requires:
            click.echo(f"    needs {', '.join(condition.name for condition in each.requires)}")


main = command_line(cli, "bmnet-compile")
