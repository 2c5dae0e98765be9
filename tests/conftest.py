"""Shared by all tests: golden text files, the race check of compiled programs, what is compiled once in a run.

Golden files are refreshed with `pytest --update-golden` and reviewed as diffs.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from race_watch import RaceWatch, watched
from repeated_cases import is_swept
from sweep_share import Share

from bmcompiler.proof import cost

settings.register_profile("loaded machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loaded machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing with them")
    parser.addoption("--share", type=Share.read, help="SEED/PARTS: of the sweeps only one of so many parts")
    parser.addoption(
        "--python", type=Path, help="of a user's environment: only the pages and the notebook run, and they run in it"
    )


def pytest_collection_finish() -> None:
    """Thousands of tests live as long as the run: none of them is looked at for garbage, which is collected rarely."""
    gc.freeze()
    gc.set_threshold(20_000)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A sweep is slow, too; with --python only what runs there is asked, with --share a part of the sweeps."""
    if config.getoption("--python"):
        items[:] = [item for item in items if "users_python" in item.fixturenames]
    for item in items:
        if is_swept(item.nodeid):
            item.add_marker("sweep")
    sweeps = [item for item in items if item.get_closest_marker("sweep")]
    for item in sweeps:
        item.add_marker("slow")
    share = config.getoption("--share")
    if share is not None:
        left_out = {item: None for item in sweeps if not share.holds(item.nodeid)}
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=list(left_out))


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of one run of the tests share; what is in it is written by whoever needs it first."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def users_python(request: pytest.FixtureRequest) -> Path | None:
    """Python of the environment that --python names."""
    return request.config.getoption("--python")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """`golden(path, text)`: `text` must equal the file; with --update-golden the file is written."""
    update = request.config.getoption("--update-golden")

    def check(path: Path, text: str) -> None:
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"{path} is missing: run pytest --update-golden and review the file"
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture(scope="module", autouse=True)
def short_proofs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compilations prove quick programs alone, but in tests about proofs: the others compare what they are about.

    Without it a third of the time of all tests are proofs of large networks of which only time and memory are measured.
    """
    with pytest.MonkeyPatch.context() as patch:
        if "proof" not in request.path.parts:
            for name, value in (("SHARE", 0.02), ("SHORT", 0.2), ("INT8_SHORT", 0.2)):
                patch.setattr(cost, name, value)
        yield


@pytest.fixture(scope="session", autouse=True)
def race_watch() -> Iterator[RaceWatch]:
    """No test compiles a program with a race."""
    with watched() as watch:
        yield watch


@pytest.fixture
def races_allowed(race_watch: RaceWatch) -> Iterator[None]:
    """For tests that are about programs with races."""
    race_watch.paused = True
    yield
    race_watch.paused = False
