"""Listings of whole models: readable order, layer names, CPU subnets, and a way back to the bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bm1684_nets import Net

from bmcompiler.backends.bm168x.codegen import CPU_LAYER
from bmcompiler.backends.bm1684.asm import assemble, listing
from bmcompiler.backends.bm1684.build import CommandBuilder
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xNet, Bm168xStage, CommandGroup, CpuSubnet, TpuSubnet
from bmcompiler.bmodel.layers import LayerSpan, encode_layers
from bmcompiler.errors import FileFormatError, UsageError
from bmcompiler.ir import Module

START = 0x1_0510_0000


def module(side: int = 6) -> Module:
    """conv, determinants (they have no kernel and run on the host), relu."""
    net = Net([(1, 4, side, side)])
    return net.module([net.b.relu(net.b.det(net.b.conv(net.inputs[0], net.f32(8, 4, 3, 3), pads=(1, 1, 1, 1))))])


def compiled(*modules: Module) -> Bm168xModel:
    model = TARGET.compile(modules or (module(),), 2).model
    assert isinstance(model, Bm168xModel)
    return model


def stage(*groups: CommandGroup, layers: bytes = b"") -> Bm168xStage:
    return Bm168xStage([], [], START, 64, [TpuSubnet(list(groups), [], [])], layers=layers)


def model_of(*stages: Bm168xStage) -> Bm168xModel:
    """What another compiler may have made."""
    return Bm168xModel([Bm168xNet("vendor\n\x1b", list(stages))])


def three_commands() -> list[CommandGroup]:
    """Load, compute, store; each waits for the one before."""
    build = CommandBuilder()
    build.gdma(direction=0)
    build.tiu(tsk_typ=3, tsk_eu_typ=2)
    build.gdma(direction=1)
    return build.groups()


def commands(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_commands_stand_in_the_order_they_run_under_the_names_of_their_layers() -> None:
    names = [LayerSpan("a\nb", "relu", 0, 1), LayerSpan("a\nb", "relu", 1, 1), LayerSpan("out", "copy", 2, 1)]
    text = listing(model_of(stage(*three_commands(), layers=encode_layers(names).encode())))
    lines = text.splitlines()
    at = lines.index("group")
    assert lines[at + 1] == r"# 'a\nb' ('relu')"
    assert [line.split("  ")[0] for line in lines[at + 2 : at + 4]] == ["0: s2l.copy", "1: ar.add"]
    assert lines[at + 4] == "# 'out' ('copy')" and lines[at + 5].startswith("2: l2s.copy")
    assert "wait=1" in lines[at + 3] and "\x1b" not in text


def test_subnets_on_the_host_are_shown_as_ir() -> None:
    text = listing(compiled())
    assert '%1 = "tensorop.det"(%0)' in text
    assert text.count("\ngroup\n") == 2 and f"# subnet 1: custom host layer {CPU_LAYER}, next 2" in text
    assert "# 'conv' ('conv')" in text and "# 'relu' ('relu')" in text
    numbers = [int(line.split(":")[0]) for line in commands(text) if line != "group"]
    assert numbers == list(range(len(numbers)))


def test_a_listing_can_be_assembled_again() -> None:
    model = compiled(module(6), module(8))
    groups = [group for _, one in model.all_stages() for group in one.groups]
    assert assemble(listing(model)) == groups and len(groups) == 4
    assert assemble(TARGET.disassemble(model, 1)) == groups[2:]
    with pytest.raises(UsageError, match="no program 2"):
        listing(model, 2)


def test_models_of_other_compilers_have_no_names() -> None:
    host = CpuSubnet(16, b"\x01\x02\xff", [], [], id=1)
    dynamic = TpuSubnet([], [], [], id=2, dynamic=True, ir_length=99)
    one = stage(*three_commands())
    text = listing(model_of(replace(one, subnets=[*one.subnets, host, dynamic])))
    assert "# subnet 1: host layer 16, next -1\n#   3 bytes of parameters" in text
    assert "made at run time from 99 bytes" in text and len(commands(text)) == 4


def test_commands_that_never_start_are_listed_last() -> None:
    build = CommandBuilder()
    ticket = build.tiu(tsk_typ=3)
    build.gdma(direction=1, after=[ticket])
    ((_, gdma),) = build.groups()
    text = listing(model_of(stage(CommandGroup(b"", gdma))))
    assert text.splitlines()[-2] == "# the rest never starts: it waits for ids that do not come"
    assert assemble(text) == [CommandGroup(b"", gdma)]


@pytest.mark.parametrize(
    "layers", [b"\xff", b"[1]", b'[["a","b",0,4]]', b'[["a","b",0,2]]'], ids=["text", "list", "range", "both engines"]
)
def test_malformed_lists_of_layers_are_refused(layers: bytes) -> None:
    with pytest.raises(FileFormatError, match="layer"):
        listing(model_of(stage(*three_commands(), layers=layers)))


def test_broken_commands_are_refused() -> None:
    with pytest.raises(FileFormatError, match="5 bytes are not whole TIU commands"):
        listing(model_of(stage(CommandGroup(b"12345", b""))))
