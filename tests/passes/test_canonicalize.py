"""What canonicalize runs besides its own list: installed passes that ask for it, a plugin's among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest
from nets import Net

from bmcompiler import passmanager
from bmcompiler.errors import UsageError
from bmcompiler.ir import Module
from bmcompiler.passes import canonicalize
from bmcompiler.passmanager import Pass, PassContext, PassResult


@dataclass(frozen=True)
class Plugin(Pass):
    """Counts its runs."""

    name = "plugin"
    canonicalize_after = "fold-pad"
    runs: ClassVar[list[str]] = []

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        self.runs.append(module.main.name)
        return PassResult(False)


@dataclass(frozen=True)
class Lost(Plugin):
    """Wants to follow a pass that canonicalize does not run."""

    name = "lost"
    canonicalize_after = "calibrate"


@pytest.fixture(autouse=True)
def fresh_list() -> Iterator[None]:
    canonicalize._whole_round.cache_clear()
    yield
    canonicalize._whole_round.cache_clear()


def net() -> Module:
    n = Net()
    return n.done(n.relu(n.input(1, 4)))


def test_a_plugins_rewrite_runs_where_it_asks_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passmanager, "entry_points", lambda group: {"plugin": lambda: Plugin})
    Plugin.runs.clear()
    canonicalize.Canonicalize().run(net(), PassContext())
    assert len(Plugin.runs) == 1
    names = [each.name for each in canonicalize._whole_round()]
    assert names[names.index("fold-pad") + 1] == "plugin"


def test_a_pass_that_follows_nobody_is_told_whom_it_may_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passmanager, "entry_points", lambda group: {"lost": lambda: Lost})
    with pytest.raises(UsageError, match=r"lost: canonicalize runs no 'calibrate'.*one of: fold-constants"):
        canonicalize.Canonicalize().run(net(), PassContext())
