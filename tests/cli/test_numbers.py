"""Options that take numbers take finite ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from click import Command

from bmcompiler.cli import accuracy, calibrate, common, compile

LENET = Path(__file__).resolve().parents[2] / "models" / "lenet"
NET = [str(LENET / "deploy.prototxt"), str(LENET / "lenet.caffemodel")]
NUMBERS = [
    (command, each.opts[0])
    for command in (accuracy.cli, calibrate.cli, compile.cli)
    for each in command.params
    if "float" in each.type.name
]


def test_no_option_takes_numbers_otherwise() -> None:
    assert {option for _, option in NUMBERS} >= {"--max-error", "--max-cycles", "--percentile"}
    for command, option in NUMBERS:
        (kind,) = (each.type for each in command.params if option in each.opts)
        assert isinstance(kind, common.Number), (command.name, option)


@pytest.mark.parametrize("number", ["nan", "inf", "-1", "-inf"])
@pytest.mark.parametrize(("command", "option"), NUMBERS)
def test_a_number_is_finite(command: Command, option: str, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert common.run(command, "bmnet", [*NET, f"{option}={number}"]) == 2
    assert f"'{option}'" in (said := capsys.readouterr().err) and number in said
