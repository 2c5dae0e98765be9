"""bmnet-compile: a Caffe, ONNX or MLIR network to a .bmodel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bmcompiler import defaults
from bmcompiler.cli.common import Number, Output, command_line, printable, progress
from bmcompiler.cli.inputs import FORMULA, image_options, limit_option, metric_option
from bmcompiler.cli.plugin_option import list_plugins_option
from bmcompiler.cli.timing_option import list_parameters, timing_profile_option
from bmcompiler.cli.workers import worker_options
from bmcompiler.options import IO_TYPES, LEVELS, METHODS
from bmcompiler.spelling import flag

if TYPE_CHECKING:
    from bmcompiler.inputs import ImageOptions
    from bmcompiler.options import IoType, Level, Method

_EPILOG = f"""
\b
Examples:
  bmnet-compile deploy.prototxt net.caffemodel --target {defaults.TARGET} --data calib.npz
  bmnet-compile net.onnx --target {defaults.TARGET} --images photos --mean 123.7,116.3,103.5 --scale 0.0171
  bmnet-compile net.onnx --target {defaults.TARGET} --calibration-table net.table -o net.bmodel
  bmnet-compile net.onnx --target {defaults.TARGET} --shapes "[[1,3,96,96]]" --shapes "[[1,3,192,192]]" --data calib.npz
  bmnet-compile net.onnx --target {defaults.TARGET} --data calib.npz --report net.html --timing-profile clock_hz=5e8

Calibration samples are values as the net was trained on.
{FORMULA}"""


class _TargetOption(click.Option):
    """Its help names the installed targets, which are looked for only when help is wanted."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from bmcompiler.plugins.registry import entry_points

        self.help = f"Chip to compile for: {' or '.join(entry_points('bmcompiler.targets'))}."
        return super().get_help_record(ctx)


@click.command(epilog=_EPILOG, context_settings={"max_content_width": 110})
@click.argument("model", required=False, metavar="MODEL", type=click.Path(path_type=Path))
@click.argument("weights", required=False, type=click.Path(path_type=Path))
@click.option("--target", cls=_TargetOption, required=True, metavar="CHIP")
@click.option("-o", "--output", type=Output(path_type=Path), help="Model file to write [default: NAME.bmodel].")
@click.option("--name", help="Name of the net inside the model [default: from the file].")
@click.option("--shapes", multiple=True, help='Input shapes, "[[1,3,224,224]]"; repeat for several programs in a file.')
@click.option("--quantize", type=click.Choice(defaults.PRECISIONS), help="Precision [default: the target's own].")
@click.option("--data", type=click.Path(path_type=Path), help="Calibration samples: .npz, .npy or a folder.")
@image_options
@limit_option
@click.option(flag("table"), "table", type=click.Path(path_type=Path), help="Thresholds instead of --data.")
@click.option(flag("method"), "method", type=click.Choice(METHODS), help="How --data is used.")
@click.option(
    "--quant-table",
    type=click.Path(path_type=Path, dir_okay=False),
    help="How each layer computes in int8: read if the file exists, else written.",
)
@click.option(
    "--io-dtype",
    type=click.Choice(IO_TYPES),
    help="Inputs and outputs of an int8 net; f32 is float [default: float] (targets with real scales).",
)
@click.option(
    "--max-error",
    metavar="PERCENT",
    type=Number(0, min_open=True),
    help="How far an output channel may be from float in int8, at any cost [default: 2, if it takes at most a quarter "
    "more cycles, else 10, if it takes at most half more; and 99 % of decisions kept, if that is quicker than float].",
)
@metric_option
@click.option(
    "--max-cycles",
    metavar="FACTOR",
    type=Number(1),
    help="How many times the cycles of the cheapest int8 program accuracy may cost.",
)
@worker_options
@click.option("--outputs", metavar="A,B", help="Cut the net at these tensors; they become its outputs.")
@click.option(
    "--opt",
    type=click.IntRange(LEVELS[0], LEVELS[-1]),
    default=LEVELS[-1],
    show_default=True,
    help="0: serial; 1: transfers overlap; 2: all.",
)
@click.option("--pipeline", help="Passes to run instead of the target's; --pipeline help lists and explains them.")
@click.option("--print-ir-after", metavar="PASS|all", help="Print the IR after a pass, to stderr.")
@click.option("--verify-each", is_flag=True, help="Verify the IR after every pass.")
@click.option("--save-ir", type=Output(path_type=Path), help="Write the final IR (.mlir, weights beside it).")
@click.option("--report", type=Output(path_type=Path), help="Write a report (.html, .json, or .csv of the layers).")
@click.option(
    "--check",
    metavar="auto|never|always|N",
    default="auto",
    show_default=True,
    help="Prove the program before it is written: run it on one sample, or N, in the simulator and by what the "
    "network means; every bit must be equal. auto: where that takes under a fifth of the compilation, or 2 s (int8: "
    "10 s).",
)
@click.option(
    "--keep-bad",
    metavar="DIR",
    type=Output(path_type=Path, file_okay=False),
    help="Where a check fails, keep the layer's IR, weights, inputs and program here, to reproduce it without the net.",
)
@timing_profile_option
@click.option("--layers", is_flag=True, help="Print a table of all layers, all reasons and all notes, too.")
@click.option("--quiet", is_flag=True, help="Print no summary.")
@list_plugins_option
def cli(
    model: Path | None,
    weights: Path | None,
    target: str,
    output: Path | None,
    name: str | None,
    shapes: tuple[str, ...],
    quantize: str | None,
    data: Path | None,
    images: ImageOptions | None,
    limit: int | None,
    table: Path | None,
    method: Method | None,
    quant_table: Path | None,
    io_dtype: IoType | None,
    max_error: float | None,
    max_cycles: float | None,
    metric: str,
    workers: int,
    scheduler: str | None,
    outputs: str | None,
    opt: Level,
    pipeline: str | None,
    print_ir_after: str | None,
    verify_each: bool,
    save_ir: Path | None,
    report: Path | None,
    check: str,
    keep_bad: Path | None,
    timing_profile: tuple[str, ...],
    layers: bool,
    quiet: bool,
) -> None:
    """Compile MODEL (.onnx, .prototxt with its .caffemodel as WEIGHTS, or .mlir) for an accelerator."""
    from bmcompiler import bmodel
    from bmcompiler.driver import compile_network, parse_shapes
    from bmcompiler.files.kinds import MODEL, TABLE, TEXT
    from bmcompiler.files.overwriting import refuse_overwriting
    from bmcompiler.files.store import check_output, file_name
    from bmcompiler.options import Options, as_check
    from bmcompiler.parallel import open_pool

    if pipeline == "help":
        _list_passes(target, quantize, opt)
        return
    if "help" in timing_profile:
        list_parameters(target)
        return
    if model is None:  # only lists do without one
        raise click.UsageError("Missing argument 'MODEL'.", click.get_current_context())
    profile = None
    if timing_profile:
        from bmcompiler.analysis.timing_profile import profile_for

        profile = profile_for(target, timing_profile)
    if report is not None:
        from bmcompiler.report import check_report

        check_report(report)
    options = Options(
        target=target,
        name=name,
        shapes=[parse_shapes(text) for text in shapes],
        quantize=quantize,
        data=data,
        images=images,
        limit=limit,
        table=table,
        method=method,
        quant_table=quant_table,
        io_dtype=io_dtype,
        max_error=max_error,
        max_cycles=max_cycles,
        metric=metric,
        outputs=None if outputs is None else [part.strip() for part in outputs.split(",") if part.strip()],
        opt=opt,
        pipeline=pipeline,
        print_ir_after=print_ir_after,
        verify_each=verify_each,
        save_ir=save_ir,
        timing_profile=profile,
        check=as_check(check),
        keep_bad=keep_bad,
        log=lambda text: click.echo(text, err=True),
        progress=progress,
    )
    table_to_write = quant_table if quant_table is not None and not quant_table.exists() else None
    first = output or Path(file_name(name or model.stem) + ".bmodel")
    refuse_overwriting([first, table_to_write], [model, weights, data, table])
    for path, kind in ((first, MODEL), (save_ir, TEXT), (table_to_write, TABLE)):
        if path is not None:
            check_output(path, kind)
    with open_pool(workers, scheduler) as options.pool:
        result = compile_network(model, weights, options)
    path = output or Path(file_name(result.model.stages()[0].net) + ".bmodel")
    bmodel.save(result.model, path)
    if report is not None:
        from bmcompiler.report import write_report

        write_report(result, report, profile)
    if quiet:
        for warning in result.warnings:
            click.echo(printable(warning), err=True)
    else:
        from bmcompiler.report.summary import layer_tables, summary

        if layers:
            click.echo(layer_tables(result))
        click.echo(summary(result, profile), nl=False)
        seconds = sum(seconds for _, seconds in result.timing)
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
