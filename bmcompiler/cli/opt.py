"""bmnet-opt: run passes on IR text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from bmcompiler.cli.common import Output, command_line, format_table
from bmcompiler.cli.options import options
from bmcompiler.cli.stdio import STDIO
from bmcompiler.errors import BMError, FileFormatError
from bmcompiler.ir.keys import WEIGHT

if TYPE_CHECKING:
    from bmcompiler.ir import Module


def _list_passes(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print every pass with its options and what it is for, and exit."""
    if not wanted:
        return
    from bmcompiler.passmanager import describe_options, find_pass, pass_names

    for name in pass_names():
        try:
            cls = find_pass(name)
        except BMError as error:
            click.echo(f"{name}\n    {error}")
            continue
        summary = (cls.__doc__ or "").strip().splitlines()
        options = describe_options(cls)
        click.echo(f"{name}\n    {summary[0] if summary else ''}" + ("" if options == "none" else f"\n    {options}"))
    ctx.exit()


@click.command()
@click.argument("file", type=click.Path())
@click.option("--pipeline", required=True, help='Passes to run, for example "fold-constants,canonicalize{rounds=2}".')
@click.option(
    "-o", "--output", default=STDIO, type=Output(stdio=True), help="Result, weights beside it; - for text on stdout."
)
@options("print_ir_after", "verify_each")
@click.option("--time-passes", "timing", is_flag=True, help="Print the time of every pass on stderr.")
@click.option(
    "--list-passes", is_flag=True, is_eager=True, expose_value=False, callback=_list_passes, help="List passes."
)
def cli(file: str, *, pipeline: str, output: str, print_ir_after: str | None, verify_each: bool, timing: bool) -> None:
    """Run a pipeline of passes on the IR text in FILE (- for stdin).

    The weights lie beside the text, as net.weights.npz beside net.mlir. Text without them works too: passes that need
    the numbers then leave constants alone.
    """
    from bmcompiler.files.kinds import TEXT
    from bmcompiler.files.mlir import save_module
    from bmcompiler.files.store import check_output
    from bmcompiler.ir import verify_module
    from bmcompiler.passmanager import PassContext, Pipeline, run_pipeline

    passes = Pipeline.parse(pipeline)
    module, complete = _read(file)
    times: list[tuple[str, float]] = []
    if output != STDIO:
        check_output(output, TEXT)
    try:
        run_pipeline(
            module,
            passes,
            PassContext(log=lambda text: click.echo(text, err=True)),
            print_ir_after=print_ir_after,
            verify_each=verify_each,
            verify=verify_module if complete else _verify_without_weights,
            timing=times,
        )
    except BMError as error:
        raise error.located(file=file) from None
    if timing:
        rows = [(name, seconds * 1000) for name, seconds in times]
        click.echo(format_table(("pass", "ms"), rows), nl=False, err=True)
    if output == STDIO:
        click.echo(str(module), nl=False)
    elif complete:
        save_module(module, output)
    else:
        _write_text(module, output)


def _read(file: str) -> tuple[Module, bool]:
    """The module, and whether its weights are there."""
    from bmcompiler.files.mlir import load_module, side_file
    from bmcompiler.files.store import read_text
    from bmcompiler.ops import parse_module

    if file != STDIO and side_file(file).is_file():
        return load_module(file), True
    try:
        text = sys.stdin.read() if file == STDIO else read_text(file)
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"not a text file ({error.reason} at byte {error.start})",
            file=file,
            remedy="bmnet-compile MODEL --save-ir FILE.mlir writes the text of a network",
        ) from None
    module = parse_module(text, file)
    try:
        _verify_without_weights(module)
    except BMError as error:
        raise error.located(file=file) from None
    return module, not any(op.name == WEIGHT for op in module.walk())


def _write_text(module: Module, output: str) -> None:
    from bmcompiler.files.kinds import TEXT
    from bmcompiler.files.store import atomic_output

    with atomic_output(output, TEXT) as stream:
        stream.write(str(module))


def _verify_without_weights(module: Module) -> None:
    """`verify_module`, with arrays of the declared types standing in for weights that are not there."""
    import numpy as np

    from bmcompiler.ir import verify_module

    missing: dict[str, Any] = {}
    for op in module.walk():
        if op.name == WEIGHT and op.attributes["key"] not in module.weights:
            missing[op.attributes["key"]] = np.broadcast_to(np.zeros((), op.result.type.numpy), op.result.shape)
    module.weights.update(missing)
    try:
        verify_module(module)
    finally:
        for key in missing:
            del module.weights[key]


main = command_line(cli, "bmnet-opt")

if __name__ == "__main__":
    main()
