"""What canonicalize runs besides its own list: installed passes that ask for it, a plugin's among them."""

from __future__ import annotations

from pathlib import Path

from nets import Net, apply, names
from plugin_packages import install, on_path

from bmcompiler.ir import Module
from bmcompiler.passes.simplify import canonicalize
from bmcompiler.passmanager import PassContext
from bmcompiler.plugins.registry import failures

PLUGIN = """
from dataclasses import dataclass
from bmcompiler.passmanager import Pass, PassResult

@dataclass(frozen=True)
class Plugin(Pass):
    name = "plugin"
    canonicalize_after = "fold-pad"

    def run(self, module, ctx):
        ctx.notes.append("plugin ran")
        return PassResult(False)
"""
LOST = """
from dataclasses import dataclass
from bmcompiler.passmanager import Pass

@dataclass(frozen=True)
class Lost(Pass):
    name = "lost"
    canonicalize_after = "calibrate"
"""


def net() -> Module:
    n = Net()
    return n.done(n.relu(n.input(1, 4)))


def test_a_plugins_rewrite_runs_where_it_asks_to(tmp_path: Path) -> None:
    install(tmp_path, "own-passes", {"passes": {"plugin": "own_passes:Plugin"}}, own_passes=PLUGIN)
    with on_path(tmp_path):
        ctx = PassContext()
        canonicalize.Canonicalize().run(net(), ctx)
        assert ctx.notes == ["plugin ran"]
        names = [each.name for each in canonicalize.whole_round()]
        assert names[names.index("fold-pad") + 1] == "plugin"
    assert "plugin" not in [each.name for each in canonicalize.whole_round()]


def test_a_pass_that_follows_nobody_is_left_out_and_told_whom_it_may_follow(tmp_path: Path) -> None:
    install(tmp_path, "lost-passes", {"passes": {"lost": "lost_passes:Lost"}}, lost_passes=LOST)
    with on_path(tmp_path):
        canonicalize.Canonicalize().run(net(), PassContext())
        assert "lost" not in [each.name for each in canonicalize.whole_round()]
        (failure,) = failures("bmcompiler.passes")
    said = "plugin 'lost' (lost_passes:Lost) of lost-passes 1.0 follows 'calibrate', which canonicalize does not run; "
    assert said + "canonicalize_after must be one of: fold-constants" in str(failure)


def test_a_norm_behind_a_transpose_is_recognised() -> None:
    """As patch embeddings have it: channels go last, and the norm is over them."""
    n = Net()
    x = n.permute(
        n.reshape(n.conv(n.input(1, 3, 8, 8), n.w(6, 3, 2, 2), strides=(2, 2)), shape=(1, 6, 16)), order=(0, 2, 1)
    )
    centred = n.sub(x, n.reduce(x, method="mean", axes=(2,), keepdims=True))
    mean = n.reduce(n.mul(centred, centred), method="mean", axes=(2,), keepdims=True)
    y = n.div(centred, n.sqrt(n.add(mean, n.fill(1e-5))))
    module = n.done(n.matmul(n.add(n.mul(y, n.w(6)), n.w(6)), n.w(6, 4)))
    apply(module, "canonicalize")
    assert names(module)[:4] == ["conv", "reshape", "permute", "layer_norm"]
    assert not {"reduce", "sqrt", "div"} & set(names(module))
