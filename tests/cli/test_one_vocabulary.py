"""A word means one thing in all commands, and spellings of before are still taken (docs/tools.md, CONTRIBUTING.md)."""

from __future__ import annotations

import io
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from cli_files import onnx_model

import bmcompiler
from bmcompiler.cli import calibrate, capi, compile, evaluate, llm, opt, run, tool
from bmcompiler.cli.common import Output, progress
from bmcompiler.cli.common import run as run_command
from bmcompiler.cli.other_words import BEFORE
from bmcompiler.errors import UsageError
from bmcompiler.options import ImageOptions, Options

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from options_page import COMMANDS


def commands() -> Iterator[tuple[str, click.Command]]:
    for name, module in COMMANDS.items():
        command = import_module(f"bmcompiler.cli.{module}").cli
        below = command.commands.items() if isinstance(command, click.Group) else [("", command)]
        yield from ((f"{name} {part}".strip(), each) for part, each in below)


def test_output_is_what_a_command_writes_and_data_what_it_reads() -> None:
    for name, command in commands():
        for each in command.params:
            if "--output" in each.opts or "-o" in each.opts:
                assert isinstance(each.type, Output), name
            assert not {"--input", "--out"} & set(each.opts), name
            if "--data" in each.opts:
                assert isinstance(each.type, click.Path) and not isinstance(each.type, Output), name


def kind_of(option: click.Option) -> tuple[object, ...]:
    """What an option takes: a word of yes, a file to write or read, a number of what, words of which form."""
    if option.is_flag:
        return ("flag",)
    if isinstance(option.type, click.Path):
        return ("written" if isinstance(option.type, Output) else "read",)
    if isinstance(option.type, click.types.IntParamType):
        return ("count",)
    return "number" if isinstance(option.type, click.types.FloatParamType) else "text", option.metavar


def test_an_option_has_one_kind_of_value_everywhere() -> None:
    kinds: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    for _, command in commands():
        for each in (each for each in command.params if isinstance(each, click.Option)):
            for word in (word for word in each.opts if word.startswith("--")):
                kinds[word].add(kind_of(each))
    assert {word: found for word, found in kinds.items() if len(found) > 1} == {}


_FILLING = {"from", "have", "more", "than", "that", "their", "them", "this", "what", "where", "which", "with"}


def told_words(text: str) -> set[str]:
    """Words of a help text that tell something: no values, names of options or short words."""
    words = {each.strip("()[].,:;").lower() for each in text.split("  [", maxsplit=1)[0].split()}
    return {each for each in words - _FILLING if each.isalpha() and len(each) > 3}


def without_common_word(texts: Iterable[tuple[str, str]]) -> list[str]:
    """Options of several commands whose help texts have no word in common: they may mean several things."""
    known: dict[str, set[str]] = {}
    for word, text in texts:
        known[word] = known.get(word, told_words(text)) & told_words(text)
    return [word for word, common in known.items() if not common]


def test_an_option_means_the_same_everywhere() -> None:
    """What is written differs by command: its help says what it is."""
    options = [each for _, command in commands() for each in command.params if isinstance(each, click.Option)]
    read = [each for each in options if not isinstance(each.type, Output)]
    texts = [(word, each.help or "") for each in read for word in each.opts if word.startswith("--")]
    assert without_common_word(texts) == []
    assert without_common_word([*texts, ("--decisions", "Score: top1, top5, or module:function.")]) == ["--decisions"]


def test_arguments_of_before_are_taken_with_a_warning() -> None:
    given: dict[str, Any] = {"target": "bm1684", "metric": "no-such-kind"}
    with pytest.warns(FutureWarning, match="metric goes in version 0.4"), pytest.raises(UsageError, match="no kind"):
        bmcompiler.compile(onnx_model(), **given)


def test_commands_that_tell_what_they_wrote_can_be_quiet() -> None:
    """`dis` and `bmnet-opt` print their result itself where no file is named, and nothing else."""
    for name, command in commands():
        writes = any("-o" in each.opts or "--report" in each.opts for each in command.params)
        quiet = [each for each in command.params if "--quiet" in each.opts]
        assert bool(quiet) == (writes and name not in {"bmnet-tool dis", "bmnet-opt"}), name


def test_quiet_commands_print_nothing_and_write_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lenet = Path(__file__).resolve().parents[2] / "models" / "lenet"
    net = (lenet / "deploy.prototxt", lenet / "lenet.caffemodel")
    model, data = tmp_path / "a.bmodel", tmp_path / "x.npz"
    bmcompiler.compile(*net, target="bm1684", output=model, check="never")
    np.savez(data, data=np.eye(28, dtype=np.float32)[None, None].repeat(2, 0))
    np.savez(tmp_path / "l.npz", l=np.zeros(2, np.int64))
    for ending, command, *words in (
        ("npz", run.cli, model, "--data", data),
        ("json", evaluate.cli, model, "--data", data, "--labels", f"{tmp_path / 'l.npz'}:l"),
        ("table", calibrate.cli, *net, "--data", data),
        ("bmodel", tool.cli, "static", model),
    ):
        written = []
        for quiet in ((), ("--quiet",)):
            output = tmp_path / f"out{len(written)}.{ending}"
            assert run_command(command, "bmnet", [*map(str, words), "-o", str(output), *quiet]) == 0
            written.append(output.read_bytes())
            assert bool(capsys.readouterr().out) == (not quiet)
        assert written[0] == written[1]


@pytest.mark.parametrize(
    ("command", "prog", "words", "message"),
    [
        (run.cli, "bmnet-run", ["no.bmodel", "--input", "x.npz"], "no.bmodel"),
        (
            evaluate.cli,
            "bmnet-eval",
            ["no.bmodel", "--data", "x.npz", "--labels", "l.npy", "--output", "y"],
            "no.bmodel",
        ),
        (run.cli, "bmnet-run", ["no.bmodel", "--check", "x.mlir"], "no.bmodel"),
        (tool.cli, "bmnet-tool", ["dis", "no.bmodel", "--net", "0"], "no.bmodel"),
        (opt.cli, "bmnet-opt", ["no.mlir", "--pipeline", "dead-code", "--timing"], "no.mlir"),
        (llm.cli, "bmnet-llm", ["compile", "none", "-o", "x", "--samples", "t", "--parts", "p", "--jobs", "2"], "none"),
        (compile.cli, "bmnet-compile", ["no.onnx", "--target", "bm1684", "--metric", "norm", "-o", "x"], "no.onnx"),
        (llm.cli, "bmnet-llm", ["eval", "none", "--text", "t", "--folder", "f"], "none"),
        (capi.cli, "bmnet-capi", ["build", "--out", "/proc/none", "--cc", "no-such-cc"], "no C compiler"),
        (
            calibrate.cli,
            "bmnet-calibrate",
            ["no.onnx", "--data", "x.npz", "-o", "t", "--calibration-method", "kl"],
            "x.npz",
        ),
    ],
)
def test_spellings_of_before_are_taken(
    command: click.Command, prog: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(command, prog, words) == 1
    said = capsys.readouterr().err
    assert message in said
    for word in BEFORE.keys() & {word.removeprefix("--") for word in words}:
        now = f"--{word} is called --"
        assert said.count(now) == (word not in own_words(command)) and (
            "goes in version 0.4" in said or now not in said
        )


def own_words(command: click.Command) -> set[str]:
    below = command.commands.values() if isinstance(command, click.Group) else [command]
    return {word.removeprefix("--") for each in below for option in each.params for word in option.opts}


def test_no_value_is_taken_for_a_word_of_before() -> None:
    """Click reads values of choices as it reads options."""
    for name, command in commands():
        for option in command.params:
            assert not BEFORE.keys() & set(getattr(option.type, "choices", ())), name


def test_words_of_other_compilers_and_own_spellings_give_no_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run_command(compile.cli, "bmnet-compile", ["no.onnx", "--chip", "BM1684", "--output_names", "y", "-o", "x"])
        == 1
    )
    assert "warning" not in capsys.readouterr().err


def test_renamed_options_are_listed_for_who_upgrades() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "upgrading.md").read_text(encoding="utf-8")
    for former in BEFORE:
        assert f"--{former}`" in page or f"--{former} " in page, former


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_says_when_it_will_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, now = Terminal(), iter(range(0, 1000, 2))
    monkeypatch.setattr("time.time", lambda: float(next(now)))
    assert list(progress(range(5), "running", 5, stream)) == list(range(5))
    assert "00:00:" in stream.getvalue() and "100%" in stream.getvalue()


def test_words_in_capitals_are_the_same_in_python() -> None:
    given = Options(target="BM1684X", quantize="BF16", method="MAX", io_dtype="F32")
    assert (given.target, given.quantize, given.method, given.io_dtype) == ("bm1684x", "bf16", "max", "float")
    assert ImageOptions("photos", channel_order="BGR").channel_order == "bgr"
    with pytest.raises(UsageError, match="quantize must be f32, f16, bf16 or int8, got 'INT9'"):
        Options(target="bm1684", quantize="INT9")
