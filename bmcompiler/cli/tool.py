"""bmnet-tool: look into model files, take them apart, put them together."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bmcompiler.cli.common import Output, command_line, format_table, printable
from bmcompiler.cli.quiet import quiet_option
from bmcompiler.cli.stdio import STDIO, read_model
from bmcompiler.errors import BMError, UsageError

if TYPE_CHECKING:
    from bmcompiler.bmodel import BModel, Stage, TensorInfo

# Model files are read by plain path, so that a missing one is a reported error (status 1) like any unreadable one.
FILE = click.argument("file", type=click.Path())


def _print_info(context: click.Context, _: click.Parameter, file: str | None) -> None:
    if file is not None:
        context.invoke(info, file=file, as_json=False)
        context.exit()


def _print_chip(context: click.Context, _: click.Parameter, file: str | None) -> None:
    if file is not None:
        click.echo(printable(read_model(file).target.upper()))
        context.exit()


@click.group(no_args_is_help=False)
@click.option(
    "--info",
    type=click.Path(),
    callback=_print_info,
    is_eager=True,
    expose_value=False,
    help="The same as `info`, as the vendor's tool has it.",
)
@click.option(
    "--chip",
    type=click.Path(),
    callback=_print_chip,
    is_eager=True,
    expose_value=False,
    help="Print the chip that a model file is for.",
)
def cli() -> None:
    """Inspect, disassemble, extract and combine .bmodel files."""


@cli.command()
@FILE
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def info(file: str, as_json: bool) -> None:
    """Print chip, nets, inputs, outputs and memory sizes of FILE."""
    model = read_model(file)
    click.echo(json.dumps(_facts(model, file), indent=2) if as_json else _text(model) + _commands(model), nl=as_json)


@cli.command()
@FILE
@click.option("--program", "net", metavar="N", type=int, help="Only this one, counted from 0 as in `info`.")
@click.option("-o", "--output", type=Output(stdio=True), help="Write to this file instead of the terminal.")
def dis(file: str, net: int | None, output: str | None) -> None:
    """Disassemble the command buffers of FILE."""
    model = read_model(file)
    if net is not None:
        model = model.select(net)
    try:
        text: str = _disassembler(model.target)(model)
    except BMError as error:
        raise error.located(file=file) from None
    text = text if text.endswith("\n") else text + "\n"
    if output in (None, STDIO):
        click.echo(text, nl=False)
        return
    from bmcompiler.files.kinds import TEXT
    from bmcompiler.files.store import atomic_output

    with atomic_output(output, TEXT) as stream:
        stream.write(text)


@cli.command()
@FILE
@click.option(
    "-o", "--output", required=True, type=Output(folder=True), help="Folder for the pieces; made when missing."
)
@quiet_option
def extract(file: str, output: str) -> None:
    """Write every command buffer, weight set and description in FILE to a file of its own."""
    from bmcompiler.files.kinds import BYTES
    from bmcompiler.files.overwriting import refuse_overwriting
    from bmcompiler.files.store import atomic_output, make_folder

    folder = Path(output)
    pieces = list(read_model(file).pieces())
    refuse_overwriting([folder / name for name, _ in pieces], [file])
    make_folder(folder)
    for name, data in pieces:
        with atomic_output(folder / name, BYTES) as stream:
            stream.write(data)
    click.echo(format_table(("file", "bytes"), ((str(folder / name), len(data)) for name, data in pieces)), nl=False)


@cli.command()
@click.argument("files", type=click.Path(), nargs=-1, required=True)
@click.option("-o", "--output", required=True, type=Output(), help="The combined model file.")
@click.option("--name", help="Net name of the result; needed when names differ in files of one net.")
@quiet_option
def combine(files: tuple[str, ...], output: str, name: str | None) -> None:
    """Put models of one net, compiled for different input shapes, into one file; equal weights are stored once.

    Where files may hold several nets, stages of nets of one name are joined.
    """
    from bmcompiler.bmodel import load, save

    if len(files) < 2:
        raise UsageError("one file cannot be combined with itself", remedy="pass two or more model files")
    first, *others = (load(file) for file in files)
    model = first.combined(others, name)
    save(model, output)
    size = os.stat(output).st_size
    click.echo(f"{output}: {len(model.stages())} programs, {len(model.weight_sets)} weight sets, {size:,} bytes")


@cli.command()
@FILE
@click.option("-o", "--output", required=True, type=Output(), help="The model file with what is left.")
@quiet_option
def static(file: str, output: str) -> None:
    """Cut the nets of FILE before their first dynamic subnet, whose inputs become outputs.

    Commands of dynamic subnets are made by the chip's firmware. Nets that begin with one are left out.
    """
    from bmcompiler.bmodel import save

    model = read_model(file)
    try:
        cut = model.static_part()
    except BMError as error:
        raise error.located(file=file) from None
    save(cut, output)
    left = {stage.net: [tensor.name for tensor in stage.outputs] for stage in cut.stages()}
    for stage in model.stages():
        if stage.dynamic:
            gives = f"gives {', '.join(left[stage.net])}" if stage.net in left else "is dynamic from its beginning on"
            click.echo(f"net {printable(stage.net)} {printable(gives)}{'' if stage.net in left else ': left out'}")
    click.echo(f"{output}: {len(cut.stages())} programs, {os.stat(output).st_size:,} bytes")


def _disassembler(target: str) -> Callable[[BModel], str]:
    """What writes the commands of a chip: its target, or a listing where nothing compiles for it."""
    from bmcompiler.plugins.registry import entry_points, lookup

    if target in entry_points("bmcompiler.listings"):
        return lookup("bmcompiler.listings", target, "listing")
    return lookup("bmcompiler.targets", target, "target").disassemble


def _tensor_facts(tensor: TensorInfo) -> dict[str, object]:
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "offset": tensor.offset,
        "size": tensor.size,
        "threshold": tensor.threshold,
        "scale": tensor.scale,
        "zero_point": tensor.zero_point,
        "layout": tensor.layout,
        "kept": tensor.kept,
    }


def _facts(model: BModel, file: str) -> dict[str, object]:
    from bmcompiler.bmodel import digest

    return {
        "file": file,
        **model.summary,
        "programs": [
            {
                "net": stage.net,
                "stage": stage.index,
                "inputs": [_tensor_facts(tensor) for tensor in stage.inputs],
                "outputs": [_tensor_facts(tensor) for tensor in stage.outputs],
                "weight_size": stage.weight_size,
                "instruction_size": stage.instruction_size,
                "neuron_size": stage.neuron_size,
                "host_size": stage.host_size,
                "io_size": stage.io_size,
                "address_mode": stage.address_mode,
                "pictures": stage.pictures,
                "sizes": stage.sizes,
                "ranges": stage.ranges,
                "subnets": list(stage.subnets),
            }
            for stage in model.stages()
        ],
        "weights": [{"size": len(data), "sha256": digest(data)} for data in model.weight_sets],
    }


def _text(model: BModel) -> str:
    """Field order of the vendor's `--info`: file, then per net its stages with inputs, outputs and memory sizes."""
    lines = [f"{key}: {printable(str(value))}" for key, value in model.summary.items()]
    nets: dict[str, list[Stage]] = {}
    for stage in model.stages():
        nets.setdefault(stage.net, []).append(stage)
    for number, (net, stages) in enumerate(nets.items()):
        kind = "dynamic" if any(stage.dynamic for stage in stages) else "static"
        mode = stages[0].address_mode
        kind += f", addr_mode: {mode}" if mode not in ("", "basic") else ""
        lines += ["=" * 42, f"net {number}: [{printable(net)}]  {kind}"]
        lines += [f"sizes: {printable(line)}" for line in _sizes(stages)]
        for stage in stages:
            lines += ["-" * 12, f"stage {stage.index}:"]
            if stage.subnets:
                lines += [f"subnet number: {len(stage.subnets)}", *(printable(line) for line in stage.subnets)]
            lines += [tensor_line("input", tensor) for tensor in stage.inputs]
            lines += [tensor_line("output", tensor) for tensor in stage.outputs]
            if stage.pictures:
                lines.append(f"pictures: {printable(pictures_of(stage))}")
            lines += [f"values: {printable(line)}" for line in _ranges(stage)]
            lines.append(_memory_line(stage))
            if stage.io_size:
                lines.append(f"io mem size: {stage.io_size} (one for all stages of the net, lasts from run to run)")
            if stage.host_size:
                lines.append(f"host mem size: {stage.host_size} (weight: 0, runtime: {stage.host_size})")
    return "\n".join(lines) + "\n"


def pictures_of(stage: Stage) -> str:
    """What pictures become, in words; the note as it is where it cannot be."""
    from bmcompiler.inputs.preprocessing import described

    try:
        return described(stage.pictures, stage.inputs[0])
    except (BMError, IndexError):
        return stage.pictures


def _ranges(stage: Stage) -> list[str]:
    """How large values of the inputs are, in words; the note as it is where it cannot be."""
    from bmcompiler.inputs.ranges import decoded

    try:
        return [f"up to about {value:g} in {name}" for name, value in decoded(stage.ranges).items()]
    except BMError:
        return [stage.ranges]


def _sizes(stages: Sequence[Stage]) -> list[str]:
    """Which sizes vary, in words; the note as it is where it cannot be."""
    from bmcompiler.sizes.note import described

    try:
        return described(stages)
    except (BMError, IndexError):
        return [stages[0].sizes]


def _commands(model: BModel) -> str:
    """What the target has to say of the commands; nothing where it does not, or cannot read them."""
    from bmcompiler.plugins.registry import entry_points
    from bmcompiler.target import find_target

    if model.target not in entry_points("bmcompiler.targets"):
        return ""
    try:
        return "".join(f"{printable(line)}\n" for line in find_target(model.target).describe(model))
    except BMError as error:
        return f"commands: {printable(error.reason)}\n"


def tensor_line(kind: str, tensor: TensorInfo) -> str:
    """Scale: what real values are multiplied by to give integers (input), or integers to give real values (output)."""
    line = f"{kind}: {printable(tensor.name) or '(unnamed)'}, {list(tensor.shape)}, {tensor.dtype}"
    if tensor.scale:
        scale = 1 / tensor.scale if kind == "input" else tensor.scale
        layout = f", store mode: {tensor.layout}" if tensor.layout else ""
        return f"{line}, scale: {scale:.6g}, zero_point: {tensor.zero_point}{layout}"
    if not tensor.threshold:
        return line
    scale = 128 / tensor.threshold if kind == "input" else tensor.threshold / 128
    return f"{line}, scale: {scale:.6g}, threshold: {tensor.threshold:.6g}"


def _memory_line(stage: Stage) -> str:
    total = stage.weight_size + stage.instruction_size + stage.neuron_size
    return (
        f"device mem size: {total} "
        f"(weight: {stage.weight_size}, instruct: {stage.instruction_size}, runtime: {stage.neuron_size})"
    )


main = command_line(cli, "bmnet-tool")
