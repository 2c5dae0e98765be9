"""Every shell block of README and docs runs, in the order of its page; one that is not run says why in the page."""

from __future__ import annotations

import re
import shutil
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from pages import ROOT, blocks, digit_files, photo_files, run_page


def nothing(folder: Path) -> None:
    """The page makes its own files."""


def readme_files(folder: Path) -> None:
    digit_files(folder)
    photo_files(folder)


def anything(text: str, printed: str) -> None:
    """That the blocks run is enough."""


def five_boxes(text: str, printed: str) -> None:
    assert "\n5 boxes\n" in printed


def results_in_comments(text: str, printed: str) -> None:
    """What a print gives stands beside it."""
    promised = re.findall(r"print\(.*\)  # (.*)", text)
    assert len(promised) >= 5
    assert all(result in printed for result in promised), printed


def some_results_in_comments(text: str, printed: str) -> None:
    """What prints of docs/bmlang.md give stands beside them, after other words."""
    for result in ("Tensor('z', FLOAT32, [1, 4], [1.5, 3, 4.5, 6])", "[127, -128]", "[200, -200]", "[50, -50]", "[50]"):
        assert result in text
        assert result in printed
    assert "mul_shift on BM1684: shift must be 0 to 31, got 40" in printed
    assert "(3, 2) Tensor('found_count', INT32, [1], [3])" in printed
    assert "['found', 'found_count']" in printed


def text_blocks(text: str, printed: str) -> None:
    """Blocks of text are what the commands print."""
    found = " ".join(printed.split())
    for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            assert " ".join(line.split()) in found, f"not printed: {line}\n{printed}"


class Page(NamedTuple):
    """What lies in the folder, and what is asked of what the page prints: `check(text of the page, printed)`."""

    files: Callable[[Path], None] = nothing
    check: Callable[[str, str], None] = anything
    quick: bool = True


PAGES = {
    "README.md": Page(readme_files, quick=False),
    "docs/accuracy.md": Page(digit_files, quick=False),
    "docs/bmlang.md": Page(check=some_results_in_comments),
    "docs/c_api.md": Page(quick=False),
    "docs/coming_from.md": Page(digit_files),
    "docs/custom_layers.md": Page(check=text_blocks, quick=False),
    "docs/kernel_layers.md": Page(check=results_in_comments),
    "docs/language_models.md": Page(),
    "docs/okkernel.md": Page(check=results_in_comments),
    "docs/python.md": Page(digit_files),
    "docs/targets.md": Page(digit_files),
    "docs/tools.md": Page(digit_files),
    "docs/toy_chip.md": Page(quick=False),
    "docs/tpukernel.md": Page(check=results_in_comments),
    "docs/tutorial.md": Page(check=five_boxes, quick=False),
    "examples/toy_chip/README.md": Page(digit_files),
}


def pages() -> list[Path]:
    """All pages for people."""
    return [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.md")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if p.quick else pytest.mark.sweep) for n, p in PAGES.items()]
)
def test_the_blocks_of_a_page_run(name: str, tmp_path: Path, users_python: Path | None) -> None:
    if name == "docs/c_api.md" and not (sysconfig.get_config_var("Py_ENABLE_SHARED") and shutil.which("pkg-config")):
        pytest.skip("needs pkg-config and a Python with a shared libpython")
    page = PAGES[name]
    page.check((ROOT / name).read_text(encoding="utf-8"), run_page(ROOT / name, tmp_path, page.files, users_python))


def test_no_page_is_forgotten() -> None:
    to_run = {page.relative_to(ROOT).as_posix() for page in pages() if any(not each.reason for each in blocks(page))}
    assert to_run == set(PAGES)


def test_what_is_not_run_says_why() -> None:
    reasons = [each.reason for page in pages() for each in blocks(page) if each.reason]
    assert len(reasons) == 10 and all(len(reason.split()) > 3 for reason in reasons)


FAILING = {
    "```sh\ntrue\n```\nand\n```sh\nfalse | true\nfalse\n```\n": "page.md: the block at line 6 failed",
    "```python\nx = 1\n```\nand\n```python\nx / 0\n```\n": 'File "<stdin>", line 6',
    "```sh\ncat models/digits.npz > /dev/null\ntest -e tools\n```\n": "page.md: the block at line 2 failed",
}


@pytest.mark.parametrize("text", FAILING)
def test_a_page_that_fails_says_where(text: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(AssertionError, match=re.escape(FAILING[text])):
        run_page(tmp_path / "page.md", tmp_path, nothing)
