"""Every shell block of README and docs runs, in the order of its page; one that is not run says why in the page."""

from __future__ import annotations

import shutil
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from fetched import third_party
from pages import ROOT, blocks, digit_files, photo_files, run_page

Files = Callable[[Path], None]
ELSEWHERE = {
    "bmlang.md": "bmlang/test_bmlang_examples.py",
    "custom_layers.md": "test_custom_layer_tutorial.py",
    "tpukernel.md": "tpukernel/test_tpukernel_page.py",
}
"""Pages whose blocks another test runs, with what they print."""


def readme_files(folder: Path) -> None:
    digit_files(folder)
    photo_files(folder)


def tutorial_files(folder: Path) -> None:
    """The page makes its own files from fetched ones."""
    for each in ("yolox_chars.onnx", "astronaut.png", "DejaVuSans-Bold.ttf"):
        third_party(each)


def nothing(folder: Path) -> None:
    """The page makes its own files."""


PAGES: dict[str, Files] = {
    "README.md": readme_files,
    "docs/accuracy.md": digit_files,
    "docs/c_api.md": nothing,
    "docs/coming_from.md": digit_files,
    "docs/python.md": digit_files,
    "docs/targets.md": digit_files,
    "docs/tools.md": digit_files,
    "docs/toy_chip.md": nothing,
    "docs/tutorial.md": tutorial_files,
    "examples/toy_chip/README.md": digit_files,
}
QUICK = {"docs/coming_from.md", "docs/python.md", "docs/targets.md", "docs/tools.md", "examples/toy_chip/README.md"}


def pages() -> list[Path]:
    """All pages for people."""
    return [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.md")]


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.sweep) for n in PAGES])
def test_the_blocks_of_a_page_run(name: str, tmp_path: Path) -> None:
    if name == "docs/c_api.md" and not (sysconfig.get_config_var("Py_ENABLE_SHARED") and shutil.which("pkg-config")):
        pytest.skip("needs pkg-config and a Python with a shared libpython")
    printed = run_page(ROOT / name, tmp_path, PAGES[name])
    if name == "docs/tutorial.md":
        assert "\n5 boxes\n" in printed and (tmp_path / "found.png").exists()


def test_no_page_is_forgotten() -> None:
    to_run = {
        page.relative_to(ROOT).as_posix()
        for page in pages()
        if page.name not in ELSEWHERE and any(not each.reason for each in blocks(page))
    }
    assert to_run == set(PAGES)


def test_what_is_not_run_says_why() -> None:
    reasons = [each.reason for page in pages() for each in blocks(page) if each.reason]
    assert len(reasons) == 9 and all(len(reason.split()) > 3 for reason in reasons)
