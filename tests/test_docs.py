"""The pages for people: their links lead somewhere, and the make targets they name exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from bmcompiler.cli import accuracy, calibrate, doctor, evaluate, llm, opt, run, tool
from bmcompiler.cli import compile as compiling

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert not [each for each in targets if "://" not in each and not (page.parent / each).exists()]


def test_make_targets_in_the_text_exist() -> None:
    named = {name for page in PAGES for name in re.findall(r"`?\bmake ([a-z-]+)`", page.read_text(encoding="utf-8"))}
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {"docs", "models"} <= named <= known


COMMANDS: dict[str, click.Command] = {
    "bmnet-accuracy": accuracy.cli,
    "bmnet-calibrate": calibrate.cli,
    "bmnet-compile": compiling.cli,
    "bmnet-doctor": doctor.cli,
    "bmnet-eval": evaluate.cli,
    "bmnet-llm": llm.cli,
    "bmnet-opt": opt.cli,
    "bmnet-run": run.cli,
    "bmnet-tool": tool.cli,
}


def command_lines(page: Path) -> Iterator[list[str]]:
    """The words of our commands in the shell blocks of a page."""
    for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if line.split(" ", 1)[0] in COMMANDS:
                yield shlex.split(line, comments=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_of_shell_blocks_have_their_options(page: Path) -> None:
    for name, *words in command_lines(page):
        command = COMMANDS[name]
        if isinstance(command, click.Group) and words and words[0] in command.commands:
            command = command.commands[words[0]]
        known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        unknown = [word for word in words if word.startswith("--") and word.split("=")[0] not in {*known, "--help"}]
        assert not unknown, f"{name}: {unknown}"


def test_some_pages_have_commands() -> None:
    assert sum(len(list(command_lines(page))) for page in PAGES) > 40


def test_the_demo_ends_as_the_readme_says(tmp_path: Path) -> None:
    script = ROOT / "examples" / "lenet_bm1880.py"
    done = subprocess.run([sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=True)
    last = done.stdout.splitlines()[-1]
    assert last.startswith("top-1: ") and last in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_page_has_its_place_in_the_site() -> None:
    named = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert {page.name for page in ROOT.glob("docs/*.md")} <= named


CODE = ("bmcompiler", "frontends", "passes", "backends", "runtime")
ROOMS = sorted(path for folder in CODE for path in ROOT.glob(f"{folder}/**/README.md"))
"""Pages about the code, which say where things are."""


def places_of(page: Path, name: str) -> list[Path]:
    """Where a path in a page may lead: from its folder, those above it, and the core; CAPITALS stand for any name."""
    pattern = re.sub(r"\b[A-Z]{4,}\b", "*", name.rstrip("/"))
    above = [each for each in page.parents if each.is_relative_to(ROOT)]
    return [found for start in (*above, ROOT / "bmcompiler") for found in start.glob(pattern)]


@cache
def words_of_the_code() -> set[str]:
    files = [path for folder in (*CODE, "tools", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    files += [ROOT / "pyproject.toml", ROOT / "Makefile", *(ROOT / "bmcompiler").rglob("*.fbs")]
    texts = [path.read_text(encoding="utf-8") for path in files]
    return {word for text in texts for word in re.findall(r"[\w-]+", text)}


@pytest.mark.parametrize("page", [ROOT / "ARCHITECTURE.md", *ROOMS], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_and_names_in_pages_about_the_code_exist(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    quoted = [each.replace("\n", " ") for each in re.findall(r"`([^`]+)`", prose)]
    paths = {each for each in quoted if re.fullmatch(r"[\w*./-]+", each) and ("/" in each or each.endswith(".py"))}
    missing = [each for each in paths if not places_of(page, each)]
    names = {
        word
        for each in set(quoted) - paths
        for word in re.findall(r"(?<![\w-])[A-Za-z][\w-]*", each)
        if not word.isupper() and not each.startswith("pytest ")
    }
    missing += sorted(names - words_of_the_code())
    assert not missing
