"""bmnet-run: run a .bmodel on arrays from a file."""

from __future__ import annotations

import io
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from bmcompiler.cli.common import Output, command_line, format_table, printable, progress
from bmcompiler.cli.inputs import FORMULA, inputs_of
from bmcompiler.cli.options import list_parameters, options
from bmcompiler.cli.quiet import QUIET
from bmcompiler.cli.stdio import STDIO, piped

if TYPE_CHECKING:
    import numpy as np

    from bmcompiler.analysis.profile import Analysis, Race
    from bmcompiler.files.kinds import Kind
    from bmcompiler.inputs import InputData

_SHOWN_RACES = 10
_MOST_CLASSES = 10_000
_EPILOG = f"""
\b
Examples:
  bmnet-run lenet.bmodel --data digits.npz -o scores.npz
  bmnet-run yolo.bmodel --images photos
  bmnet-run resnet.bmodel --images photos --mean 123.7,116.3,103.5 --scale 0.0171
  bmnet-run lenet.bmodel --data int8.npz -o int8_out.npz --raw
  bmnet-run lenet.bmodel --data digits.npz --timing --trace lenet.trace.json --check-races
  bmnet-run lenet.bmodel --data digits.npz --compare scores.npz
  bmnet-run lenet.bmodel --data digits.npz --timing --timing-profile clock_hz=5e8
  bmnet-run lenet.bmodel --check-ir lenet.mlir
  bmnet-run llm.bmodel --net block_cache_0 --data in.npz -o out.npz --raw

Inputs are real values, any number of samples; they are quantized with the scale in the model, and the outputs are
written as float32. For images, the classes with the highest scores are printed when the output looks like scores.
Open a trace with https://ui.perfetto.dev or chrome://tracing.
{FORMULA}"""


@click.command(epilog=_EPILOG, context_settings={"max_content_width": 110})
@click.argument("model", metavar="BMODEL", type=click.Path(path_type=Path))
@options("data", "images", "told", "limit", data={"help": "Values of the inputs: .npz, .npy, or a folder of them."})
@click.option("-o", "--output", metavar="OUT.npz", type=Output(stdio=True, path_type=Path),
              help="Where the outputs go; - for standard output, with all texts on standard error.")  # fmt: skip
@click.option("--raw", is_flag=True, help="Pass the integers of the device both ways, no scaling.")
@click.option("--timing", is_flag=True, help="Print the time on this host, and a model of the chip's.")
@click.option("--trace", metavar="FILE.json", type=Output(path_type=Path), help="Write a timeline (Chrome trace).")
@options("timing_profile")
@click.option("--check-races", is_flag=True, help="Prove first that the wait ids order all commands that need it.")
@click.option(
    "--compare",
    metavar="REF.npz",
    type=click.Path(path_type=Path),
    help="Print how far outputs are from these; layers inside: bmnet-accuracy --dump-layers.",
)
@click.option(
    "--check-ir",
    "check",
    metavar="IR.mlir",
    type=click.Path(path_type=Path),
    help="Prove that the program is what this IR (of --save-ir) means: one sample of the inputs, or a drawn one, gives "
    "the same bits in both.",
)
@click.option("--fast", is_flag=True, help="Let float sums differ in their last bits from the chip's.")
@click.option("--net", metavar="NAME", help="The net to run, where the model has several.")
@click.option(
    "--device",
    default="sim:0",
    show_default=True,
    help="Device to run on: sim:NUMBER, or board:NUMBER behind the vendor's installed libraries.",
)
@click.option("--quiet", is_flag=True, help=QUIET)
def cli(
    *,
    model: Path,
    data: Path | None,
    images: Path | None,
    told: dict[str, Any],
    limit: int | None,
    output: Path | None,
    raw: bool,
    timing: bool,
    trace: Path | None,
    timing_profile: tuple[str, ...],
    check_races: bool,
    compare: Path | None,
    check: Path | None,
    fast: bool,
    net: str | None,
    device: str,
    quiet: bool,
) -> None:
    """Run BMODEL on arrays or images and write its outputs to OUT.npz."""
    from bmcompiler.analysis.timing_profile import profile_for
    from bmcompiler.errors import BMError, RuntimeUseError
    from bmcompiler.files.kinds import ARRAYS, JSON

    session = _session(model, device, net, fast)
    if "help" in timing_profile:
        list_parameters(session.model.target)
        return
    profile = profile_for(session.model.target, timing_profile)
    if check is not None and not any((data, images, output, timing, trace, check_races, compare)):
        return _check(session, model, check, None, raw, quiet)
    inputs = inputs_of(session, "--data", data, images, told, limit)
    if check is not None:
        _check(session, model, check, inputs, raw, quiet)
    wanted = None if compare is None else _references(compare, [info.name for info in session.outputs])
    steps = 0

    def shown(each: range) -> Iterator[int]:
        nonlocal steps
        steps = len(each)
        yield from progress(each, "running", len(each)) if len(each) > 1 else each

    arrays = _standard_output() if str(output) == STDIO else _opened(output, ARRAYS)
    with arrays as stream, _opened(trace, JSON) as trace_stream:
        try:
            analysis = _analysis(session, inputs, profile) if timing or trace or check_races else None
            if analysis is not None and check_races:
                _refuse_races(analysis.races(), model)
            start = time.perf_counter()
            results = session.run(inputs, raw=raw, progress=shown)
        except RuntimeUseError as error:
            raise error.located(file=inputs.file) from None
        except BMError as error:
            raise error.located(file=model) from None
        seconds = time.perf_counter() - start
        compared = "" if wanted is None else _comparison(results, wanted, compare)  # where it fails, nothing is written
        if stream is not None:
            write_npz(stream, results)
        if analysis is not None and trace_stream is not None:
            trace_stream.write(analysis.trace())
    if quiet:
        return
    click.echo(f"input: {printable(inputs.description or '')}")
    click.echo(_output_table(results), nl=False)
    click.echo(compared, nl=False)
    if images is not None and inputs.names is not None:
        click.echo(top_scores(inputs.names, results), nl=False)
    click.echo(f"{_count(steps, 'step')} in {seconds:.3g} s on this host ({seconds / steps:.3g} s per step)")
    _say_how(session.mode, check_races)
    if analysis is not None and timing:
        from bmcompiler.cli.timing import timing_text

        click.echo("\n" + timing_text(analysis.timing()), nl=False)
    _say_written(output, trace)


def _session(model: Path, device: str, net: str | None, fast: bool) -> Any:
    """The net of that name, or the only one. Raises UsageError where there are several and none is named."""
    from bmcompiler.errors import UsageError
    from bmcompiler.plugins.registry import lookup

    session = lookup("bmcompiler.runtimes", "session", "runtime")(piped(model), device, net=net, fast=fast)
    if net is None and len(session.nets) > 1:
        names = ", ".join(map(printable, session.nets))
        raise UsageError(f"{model} has {len(session.nets)} nets", remedy=f"pass one with --net: {names}")
    return session


def _say_how(mode: str, check_races: bool) -> None:
    if mode:
        click.echo(f"fast mode: {mode}")
    if check_races:
        click.echo("no races: the wait ids order every two commands that touch the same bytes")


def _say_written(*paths: Path | None) -> None:
    for path in paths:
        if path is not None and str(path) != STDIO:
            click.echo(f"wrote {path} ({path.stat().st_size:,} bytes)")


def _check(session: Any, model: Path, check: Path, data: InputData | None, raw: bool, quiet: bool) -> None:
    """Prove a program against its IR, with the first of the inputs. Raises WrongProgramError where they differ."""
    from bmcompiler.driver import load_network
    from bmcompiler.errors import BMError, UsageError
    from bmcompiler.proof.prove import prove_file

    if session.mode:
        raise UsageError("--check-ir compares bits, which --fast does not keep", remedy="leave out one of them")
    try:
        of_data = prove_file(session, load_network(check), data, raw)
    except BMError as error:
        raise error.located(file=model) from None
    if not quiet:
        click.echo(f"checked   1 sample: program = evaluate, every bit{'' if of_data else ' (drawn, not of the data)'}")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _analysis(session: Any, inputs: InputData, profile: Any) -> Analysis:
    """The analysis of the program that will run. Raises UnsupportedError when the chip has none."""
    from bmcompiler.analysis.profile import analysis_of
    from bmcompiler.errors import UnsupportedError

    target, program = session.model.target, session.program_for(inputs)
    found = analysis_of(target, session.model, program, profile)
    if found is None:
        raise UnsupportedError(
            f"no plugin analyses programs for {target}", remedy="leave out --timing, --trace and --check-races"
        )
    return found


def _refuse_races(races: Sequence[Race], model: Path) -> None:
    from bmcompiler.errors import SimulatorError

    if not races:
        return
    shown = "".join(f"\n  {race}" for race in races[:_SHOWN_RACES])
    more = f"\n  and {len(races) - _SHOWN_RACES} more" if len(races) > _SHOWN_RACES else ""
    raise SimulatorError(f"{_count(len(races), 'race')}; the result depends on timing:{shown}{more}", file=model)


@contextmanager
def _standard_output() -> Iterator[IO[Any]]:
    """What takes arrays for standard output, where they go as a whole; texts go to standard error from here on."""
    standard, collected = sys.stdout.buffer, io.BytesIO()
    click.get_current_context().with_resource(redirect_stdout(sys.stderr))
    yield collected
    standard.write(collected.getvalue())
    standard.flush()


@contextmanager
def _opened(path: Path | None, kind: Kind) -> Iterator[IO[Any] | None]:
    """An output, opened before the work so that a path that cannot be written costs no run."""
    if path is None:
        yield None
        return
    from bmcompiler.files.store import atomic_output

    with atomic_output(path, kind) as stream:
        yield stream


def _references(path: Path, outputs: Sequence[str]) -> dict[str, np.ndarray]:
    """Arrays of a file by output name; the only one may have any name. Raises BMError for none that fits."""
    from bmcompiler.errors import RuntimeUseError
    from bmcompiler.inputs.stored import stored_arrays

    stored = stored_arrays(path)
    if len(stored) == len(outputs) == 1:
        return {outputs[0]: next(iter(stored.values())).read()}
    unknown = [name for name in stored if name not in outputs]
    if unknown:
        known = ", ".join(outputs)
        raise RuntimeUseError(f"the model has no output '{unknown[0]}'", file=path, remedy=f"name arrays like: {known}")
    return {name: array.read() for name, array in stored.items()}


def _comparison(results: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray], path: Path | None) -> str:
    """How far outputs are from references of the same number of elements."""
    from bmcompiler.errors import RuntimeUseError
    from bmcompiler.evaluation.difference import difference

    rows = []
    for name, reference in wanted.items():
        try:
            equal, largest, error, cosine = difference(name, results, reference)
        except RuntimeUseError as problem:
            raise problem.located(file=path) from None
        rows.append((name, f"{equal:.1%}", largest, f"{error:.4%}", f"{cosine:.6f}"))
    return format_table(("against the reference", "equal", "largest difference", "error", "cosine"), rows)


def write_npz(stream: IO[Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Arrays under any names (numpy's own writer takes no array called "file"); equal arrays give equal bytes."""
    import numpy as np

    written = io.BytesIO()  # devices such as /dev/null do not say where they are
    with zipfile.ZipFile(written, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
    stream.write(written.getbuffer())


def _output_table(results: Mapping[str, np.ndarray]) -> str:
    rows = [
        (name, "x".join(map(str, value.shape)), str(value.dtype), float(value.min()), float(value.max()))
        for name, value in results.items()
    ]
    return format_table(("output", "shape", "type", "least", "largest"), rows)


def top_scores(names: Sequence[str], results: Mapping[str, np.ndarray], top: int = 5, most: int = 20) -> str:
    """The best classes of the first `most` images; empty unless there is one output with a row of scores per image."""
    values = next(iter(results.values()))
    classes = values.size // len(names)
    sizes = _above_one(*values.shape)
    if len(results) != 1 or not 2 <= classes < _MOST_CLASSES or sizes != _above_one(len(names), classes):
        return ""
    scores = values.reshape(len(names), classes)
    best = (-scores[:most]).argsort(axis=1, kind="stable")[:, :top]
    rows = [
        (name, ", ".join(f"{each} ({row[each]:.4g})" for each in order))
        for name, row, order in zip(names, scores, best.tolist())
    ]
    more = f"and {len(names) - most} more images\n" if len(names) > most else ""
    return format_table(("image", "best classes (score)"), rows) + more


def _above_one(*sizes: int) -> list[int]:
    return sorted(size for size in sizes if size > 1)


main = command_line(cli, "bmnet-run")
