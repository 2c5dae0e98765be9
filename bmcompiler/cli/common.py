"""What all commands share: one place that prints errors, output files, progress bars, tables.

    main = command_line(cli, "bmnet-tool")      # the entry point of a console script

Exit status: 0 success, 1 a reported error, 2 bad usage, 130 interrupted, 143 terminated.
"""

from __future__ import annotations

import errno
import functools
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TextIO, TypeVar, cast

import click

from bmcompiler.cli.config_option import add_config_option, config_file
from bmcompiler.cli.other_words import take_other_words
from bmcompiler.cli.stdio import STDIO
from bmcompiler.errors import BMError, UsageError
from bmcompiler.spelling import in_shell
from bmcompiler.text import Cell, format_table, printable

__all__ = ["Cell", "Number", "Output", "command_line", "format_table", "printable", "progress", "run"]

T = TypeVar("T")


class Output(click.Path):
    """The type of options that name a file or folder to write; all other paths of a command are read.

    `stdio`: whether - stands for standard output. `folder`: whether it is one that is written.
    """

    def __init__(self, *, stdio: bool = False, folder: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stdio, self.folder = stdio, folder

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises click.BadParameter for a folder in place of a file: without the end of its name it would be one."""
        if self.file_okay and not self.folder and isinstance(value, str) and value.endswith(os.sep):
            self.fail(f"'{printable(value)}' names a folder, and a file is written.", param, ctx)
        return super().convert(value, param, ctx)


class Number(click.FloatRange):
    """A finite number in a range; click's own lets NaN through every range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises click.BadParameter for NaN and infinity, too."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return found


def command_line(command: click.Command, prog: str) -> Callable[[], None]:
    """The function a console script calls.

    It gives the command `--version`, `-h` wherever there is `--help`, `--config` (those of a group each for itself),
    and words of other compilers. No command begins whose outputs would replace its inputs.
    """
    add_config_option(command)
    _add_version(command, prog)
    _keep_inputs(command)
    take_other_words(command)
    command.context_settings.setdefault("help_option_names", ["-h", "--help"])

    def main() -> None:
        sys.exit(run(command, prog))

    return main


def _keep_inputs(command: click.Command) -> None:
    """Compare the paths that are given before the command, or each one of a group, begins."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            _keep_inputs(each)
        return
    begin = command.callback
    assert begin is not None, "commands do something"
    written = {each.name: each for each in command.params if isinstance(each.type, Output)}

    def kept(**given: Any) -> Any:
        from bmcompiler.files.overwriting import refuse_overwriting

        outputs = [value for name, value in given.items() if name in written]
        for name, option in written.items():
            if str(given[name]) == STDIO and not cast(Output, option.type).stdio:
                raise UsageError(f"{option.opts[0]} - : it is not written to standard output", remedy="name a file")
        inputs = [path for name, value in given.items() if name not in written for path in _named_files(value)]
        inputs += _named_files(config_file())
        refuse_overwriting((path for path in outputs if path is not None and str(path) != STDIO), inputs)
        return begin(**given)

    command.callback = functools.update_wrapper(kept, begin)


def _named_files(value: object) -> list[str]:
    """What of an option's value is a file or folder: all of it, or what stands before the colon of FILE:NAME."""
    if isinstance(value, tuple):
        return [path for each in value for path in _named_files(each)]
    if not isinstance(value, str | os.PathLike):
        return []
    text = os.fspath(value)
    there = os.path.exists if isinstance(value, os.PathLike) else os.path.isfile  # a word may be a folder's name, too
    return [each for each in (text, text.rpartition(":")[0]) if each not in {"", STDIO} and there(each)]


def _add_version(command: click.Command, prog: str) -> None:
    def show(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted and not ctx.resilient_parsing:
            from bmcompiler.version import version

            click.echo(f"{prog} {version()}")
            ctx.exit()

    help_text = "Print the version."
    option = click.Option(["--version"], is_flag=True, is_eager=True, expose_value=False, callback=show, help=help_text)
    command.params.append(option)


@in_shell()
def run(command: click.Command, prog: str, args: Sequence[str] | None = None) -> int:
    """Run a click command; returns the exit status and prints what went wrong on stderr, never a traceback.

    Errors of the program itself (any other exception) pass through.
    """
    for stream in (sys.stdout, sys.stderr):  # a name that the terminal cannot show must not end the run
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = command.main(args=None if args is None else list(args), prog_name=prog, standalone_mode=False)
        if sys.stdout is not None:  # the shell may have closed it
            sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.UsageError as error:
        return _fail(prog, f"{error.format_message()} ('{_command_path(error, prog)} --help' shows the usage)", 2)
    except (click.Abort, KeyboardInterrupt):
        return _fail(prog, "interrupted", 130)
    except click.ClickException as error:
        return _fail(prog, error.format_message(), 1)
    except UsageError as error:
        return _fail(prog, str(error), 2)
    except BMError as error:
        return _fail(prog, str(error), 1)
    except BrokenPipeError:
        return _pipe_closed()
    except OSError as error:
        return _pipe_closed() if error.errno == errno.EPIPE else _fail(prog, _os_message(error), 1)
    except MemoryError:
        return _fail(prog, "not enough memory for this model", 1)
    except RecursionError:
        return _fail(prog, "the input is nested too deeply to be read", 1)


def _fail(prog: str, message: str, status: int) -> int:
    click.echo(f"{prog}: {printable(message, keep_lines=True)}", err=True)
    return status


def _command_path(error: click.UsageError, prog: str) -> str:
    return error.ctx.command_path if error.ctx is not None else prog


def _os_message(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:  # files of ours say their names
        return f"standard output: {reason}" if error.errno == errno.ENOSPC else reason
    if error.errno == errno.ENOENT and "Remedy" not in reason:
        reason += ". Remedy: check the path"
    return f"{error.filename}: {reason}"


def _pipe_closed() -> int:
    """The reader of stdout went away (`| head`): say nothing, and keep Python's exit from flushing into it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def progress(items: Iterable[T], label: str, total: int | None = None, stream: TextIO | None = None) -> Iterator[T]:
    """Yield `items`, with a bar on stderr when that is a terminal, with nothing otherwise."""
    stream = sys.stderr if stream is None else stream
    if not stream.isatty():
        yield from items
        return
    with click.progressbar(items, length=total, label=label, file=stream) as bar:
        yield from bar
