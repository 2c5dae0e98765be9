"""bmnet-eval: how well a compiled model does its task over a data set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bmcompiler.cli.common import Output, command_line, format_table, printable, progress
from bmcompiler.cli.inputs import FORMULA, inputs_of
from bmcompiler.cli.options import options, worker_options
from bmcompiler.cli.quiet import quiet_option
from bmcompiler.cli.stdio import read_bytes

if TYPE_CHECKING:
    from bmcompiler.evaluation.dataset import Evaluated
    from bmcompiler.options import Shapes

_EPILOG = f"""
\b
Examples:
  bmnet-eval lenet.bmodel --data digits.npz --labels labels.npy --metric top1
  bmnet-eval resnet.bmodel --images val --labels val.txt --metric top5 --workers 4 --resume resnet.journal
  bmnet-eval net.bmodel --data x.npz --metric cosine --float net.onnx
  bmnet-eval det.bmodel --data x.npz --metric my_metrics:found --scheduler tcp://10.0.0.1:8786

LABELS: an .npy file, FILE.npz:ARRAY, or text with a class number per line (or NAME NUMBER, for images). A metric of
your own is a function (outputs, labels) -> {{name: one number per sample}}; its attribute `score`, a function of the
sums, makes the score, else it is the mean of the first name.
{FORMULA}"""


@click.command(epilog=_EPILOG, context_settings={"max_content_width": 110})
@click.argument("model", metavar="BMODEL", type=click.Path(path_type=Path))
@options("data", "images", "told", "limit")
@click.option("--labels", metavar="FILE[:NAME]", help="What is right for each sample.")
@click.option(
    "--metric",
    metavar="KIND",
    default="top1",
    show_default=True,
    help="Score: top1, top5, cosine, decisions, or module:function.",
)
@click.option("--scored", "chosen", metavar="NAME", default="", help="The output that the metric scores, of several.")
@click.option(
    "--float", "network", metavar="NET", type=click.Path(path_type=Path), help="Float network to measure beside."
)
@click.option("--weights", metavar="FILE", type=click.Path(path_type=Path), help="Its caffemodel.")
@options("shapes", shapes={"help": 'Its input shapes, "[[1,3,224,224]]", where it leaves them open.'})
@worker_options
@click.option("--part", type=click.IntRange(1), default=32, show_default=True, help="Samples per piece of work.")
@click.option(
    "--resume",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Keep finished parts in FILE; the same command again goes on with them.",
)
@click.option("--fast", is_flag=True, help="Let float sums differ in their last bits from the chip's.")
@click.option("-o", "--report", metavar="FILE.json", type=Output(path_type=Path), help="Numbers of every sample.")
@quiet_option
def cli(
    *,
    model: Path,
    data: Path | None,
    images: Path | None,
    told: dict[str, Any],
    limit: int | None,
    labels: str | None,
    metric: str,
    chosen: str,
    network: Path | None,
    weights: Path | None,
    shapes: Shapes | None,
    workers: int,
    scheduler: str | None,
    part: int,
    resume: Path | None,
    fast: bool,
    report: Path | None,
) -> None:
    """Run BMODEL over a data set and print how well it does."""
    from bmcompiler.driver import load_network
    from bmcompiler.errors import UsageError
    from bmcompiler.evaluation.dataset import evaluate
    from bmcompiler.evaluation.job import Evaluation, network_files
    from bmcompiler.evaluation.labels import load_labels
    from bmcompiler.evaluation.metrics import find_metric
    from bmcompiler.files.kinds import JSON
    from bmcompiler.files.overwriting import refuse_overwriting
    from bmcompiler.files.store import check_output
    from bmcompiler.parallel import open_pool

    wanted = find_metric(metric)
    if wanted.needs_labels and labels is None:
        raise UsageError(f"--metric {metric} needs --labels")
    if wanted.needs_float and network is None:
        raise UsageError(f"--metric {metric} compares with the float network: name it with --float")
    refuse_overwriting((report, resume), ())
    if report is not None:
        check_output(report, JSON)
    files = None
    if network is not None:
        files = network_files(load_network(network, weights, shapes=shapes))
    task = Evaluation(read_bytes(model), wanted, files, chosen, fast)
    session = task.state().session
    names = [info.name for info in session.outputs]
    if chosen and chosen not in names:
        raise UsageError(f"{model} has no output '{chosen}'", remedy=f"choose one of: {', '.join(names)}")
    inputs = inputs_of(session, "--data", data, images, told, limit)
    truth = None if labels is None else load_labels(labels, inputs.names)
    if truth is not None and limit is not None:
        truth = truth[:limit]
    with open_pool(workers, scheduler) as pool:
        done = evaluate(task, inputs, truth, pool, part=part, journal=resume, progress=progress)
    click.echo(printable(f"{model}: {inputs.description or f'{done.samples:,} samples'}"))
    click.echo(_text(done), nl=False)
    if report is not None:
        from bmcompiler.files.store import atomic_output

        with atomic_output(report, JSON) as stream:
            json.dump(_json(done), stream, indent=1)
        click.echo(f"wrote {report}")


def _text(done: Evaluated) -> str:
    rows = [(done.metric, done.score, done.float_score)]
    for name, numbers in done.values.items():
        if name != done.metric:
            beside = None if done.float_values is None else _mean(done.float_values[name])
            rows.append((f"mean {name}", _mean(numbers), beside))
    columns = 2 if done.float_values is None else 3
    shown = [
        (name, f"{value:.6g}", "" if beside is None else f"{beside:.6g}")[:columns] for name, value, beside in rows
    ]
    table = format_table(("metric", "compiled", "float")[:columns], shown)
    resumed = f", {done.resumed:,} of them from the journal" if done.resumed else ""
    rate = (done.samples - done.resumed) / max(done.seconds, 1e-9)
    return f"{table}{done.samples:,} samples in {done.seconds:.3g} s{resumed} ({rate:.3g} per second)\n"


def _mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def _json(done: Evaluated) -> dict[str, object]:
    return {
        "metric": done.metric,
        "score": done.score,
        "float_score": done.float_score,
        "samples": done.samples,
        "values": done.values,
        "float_values": done.float_values,
    }


main = command_line(cli, "bmnet-eval")
