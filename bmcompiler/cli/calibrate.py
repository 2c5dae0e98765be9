"""bmnet-calibrate: measure the range of every tensor of a network and write it as a calibration table."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bmcompiler.cli.common import Number, Output, command_line, printable, progress
from bmcompiler.cli.inputs import FORMULA, one_source
from bmcompiler.cli.options import options, worker_options
from bmcompiler.cli.quiet import quiet_option
from bmcompiler.cli.stdio import piped

if TYPE_CHECKING:
    from collections.abc import Callable

    from bmcompiler.ir import Module
    from bmcompiler.options import ImageOptions, Preprocessing, Shapes

_EPILOG = f"""
\b
Examples:
  bmnet-calibrate deploy.prototxt net.caffemodel --data calib.npz -o net.table
  bmnet-calibrate net.onnx --images photos --mean 123.7,116.3,103.5 --scale 0.0171 -o net.table
  bmnet-calibrate net.onnx --images photos --workers 4 -o net.table
  bmnet-calibrate net.onnx --images photos --letterbox --std 255 --fuse-preprocess bgr-nhwc -o net.table
  bmnet-calibrate net.onnx --data calib.npz --method percentile -o net_calibration_table.prototxt
{FORMULA}
The ending of TABLE chooses its form: .pb2 and .prototxt are the chip vendor's binary and text form, anything else is
plain text, one tensor and threshold per line.
"""


@click.command(epilog=_EPILOG, context_settings={"max_content_width": 110})
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("weights", required=False, type=click.Path(path_type=Path))
@options("data", "images", "limit", "fuse_preprocess")
@click.option("-o", "--output", required=True, metavar="TABLE", type=Output(path_type=Path), help="Table to write.")
@options("method", method={"flags": ("--method", "--calibration-method"), "default": "kl", "show_default": True})
@click.option(
    "--percentile", type=Number(50, 100), default=99.99, show_default=True, help="Share of values kept, for percentile."
)
@click.option("--bins", type=int, default=2048, show_default=True, help="Histogram bins, a multiple of 128.")
@options("shapes", "outputs")
@worker_options
@quiet_option
def cli(
    model: Path,
    weights: Path | None,
    data: Path | None,
    images: ImageOptions | None,
    limit: int | None,
    fuse_preprocess: str | None,
    output: Path,
    method: str,
    percentile: float,
    bins: int,
    shapes: Shapes | None,
    outputs: list[str] | None,
    workers: int,
    scheduler: str | None,
    preprocess: Preprocessing | None = None,
) -> None:
    """Write the calibration table of MODEL (.onnx, .prototxt with its .caffemodel as WEIGHTS, or .mlir)."""
    from bmcompiler.driver import load_network
    from bmcompiler.errors import BMError
    from bmcompiler.files.kinds import TABLE
    from bmcompiler.files.store import check_output
    from bmcompiler.inputs import open_inputs
    from bmcompiler.inputs.advice import WARNING, data_notes
    from bmcompiler.inputs.camera import fused
    from bmcompiler.options import ModuleOptions
    from bmcompiler.parallel import open_pool
    from bmcompiler.passmanager import PassContext, Pipeline, find_pass, run_pipeline
    from bmcompiler.quant.table import save_table

    check_output(output, TABLE)
    one_source("--data", data, images)
    read: Callable[[], Module] = partial(load_network, piped(model), weights, shapes=shapes, outputs=outputs)
    if fuse_preprocess is not None:
        asked = ModuleOptions(images=images, preprocess=preprocess, fuse_preprocess=fuse_preprocess)
        (read,), asked, _ = fused([read], asked)
        images = asked.images
    source = open_inputs(one_source("--data", data, images), limit)
    calibrate = find_pass("calibrate")(method=method, percentile=percentile, bins=bins)  # type: ignore[call-arg]
    pipeline = Pipeline((find_pass("canonicalize")(), calibrate))
    module = read()
    notes = data_notes(module, source)
    for warning in (note for note in notes if note.startswith(WARNING)):
        click.echo(printable(warning), err=True)
    with open_pool(workers, scheduler) as pool:
        ctx = PassContext(data=source, progress=progress, pool=pool)
        try:
            run_pipeline(module, pipeline, ctx)
        except BMError as error:
            raise error.located(file=model) from None
    save_table(ctx.table, output)
    click.echo(f"{output}: {len(ctx.table.thresholds)} thresholds, method {method}")
    click.echo(printable("\n".join(note for note in notes if not note.startswith(WARNING))))
    click.echo("none of them is held back: with this table an error on them is one on samples of calibration")


main = command_line(cli, "bmnet-calibrate")
