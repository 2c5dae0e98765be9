"""The C libraries, built once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from bmcompiler.capi.build import build


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("capi")
    build(folder, "gcc")
    return folder
