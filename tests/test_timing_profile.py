"""Parameters of timing models given by users: what they change, and what is said of wrong ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bmcompiler.analysis.timing_profile import parameters, profile_for
from bmcompiler.errors import UsageError
from bmcompiler.plugins.registry import entry_points


@pytest.mark.parametrize("target", sorted(entry_points("bmcompiler.timing_profiles")))
def test_every_parameter_of_every_chip_can_be_given(target: str, tmp_path: Path) -> None:
    defaults = parameters(target)
    assert defaults and all(value >= 0 for value in defaults.values())
    wanted = {name: value * 2 or 1 for name, value in defaults.items()}
    file = tmp_path / "profile.json"
    file.write_text(json.dumps(wanted))
    pairs = ",".join(f"{name}={value!r}" for name, value in wanted.items())
    for profile in (profile_for(target, [str(file)]), profile_for(target, [pairs])):
        assert {name: getattr(profile, name) for name in wanted} == wanted
        assert profile.assumptions() != profile_for(target, [next(iter(defaults)) + "=2e6"]).assumptions()


def test_profiles_have_names_and_parameters_on_top() -> None:
    vendor = profile_for("bm1684", ["vendor"])
    assert profile_for("bm1684", ["silicon"]) != vendor
    changed = profile_for("bm1684", ["vendor", "start=3"])
    assert (changed.start, changed.conv_tap) == (3, vendor.conv_tap)
    assert "timing profile vendor with 1 other values" in changed.assumptions()[0]
    assert [changed.standing(name) for name in ("start", "conv_tap")] == ["given", "vendor's estimate"]


def test_without_settings_the_chip_has_its_own() -> None:
    assert profile_for("bm1880", []) is None
    assert profile_for("nochip", []) is None and parameters("nochip") == {}


def test_a_parameter_is_given_once() -> None:
    with pytest.raises(UsageError, match="clock_hz is given twice"):
        profile_for("bm1684", ["clock_hz=5e8,clock_hz=6e8"])


def test_later_settings_win(tmp_path: Path) -> None:
    file = tmp_path / "slow.json"
    file.write_text('{"ddr_burst": 16, "gdma_start": 7}')
    profile = profile_for("bm1880", [str(file), "ddr_burst=128, wide_passes=3"])
    assert (profile.ddr_burst, profile.gdma_start, profile.wide_passes) == (128, 7, 3)
    assert isinstance(profile.ddr_burst, int)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("speed=3", r"no parameter 'speed'.*Remedy: it has clock_hz, .*gdma_start"),
        ("clock_hz=fast", "clock_hz must be a number, got 'fast'"),
        ("clock_hz=nan", "clock_hz must be a number, got 'nan'"),
        ("gdma_start=1.5", "gdma_start must be a whole number, got '1.5'"),
        ("clock_hz=-1", "clock_hz must be positive"),
        ("clock_hz=", "takes a JSON file or KEY=VALUE"),
        ("=1", "takes a JSON file or KEY=VALUE"),
        ("clock_hz=1,,", "takes a JSON file or KEY=VALUE"),
        ("no_such_file.json", "cannot be read: No such file.*or KEY=VALUE pairs"),
    ],
)
def test_wrong_settings_are_named(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        profile_for("bm1880", [text])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ('{"clock_hz": 5e8, "clock_hz": 6e8}', "'clock_hz' is given twice"),
        ("[1]", "must hold one JSON object"),
        ('{"clock_hz": true}', "clock_hz must be a number, got True"),
        ('{"clock_hz": [1]}', "clock_hz must be a number"),
        ('{"clock_hz": 1e999}', "clock_hz must be a number"),
        ('{"clock_hz": "x"}', "clock_hz must be a number, got 'x'"),
    ],
)
def test_wrong_files_are_named(content: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_text(content)
    with pytest.raises(UsageError, match=message):
        profile_for("bm1880", [str(file)])


def test_chips_without_parameters_say_so() -> None:
    with pytest.raises(UsageError, match="timing model of nochip has no parameters"):
        profile_for("nochip", ["clock_hz=1"])


def test_an_empty_profile_is_refused() -> None:
    with pytest.raises(UsageError, match="is empty"):
        profile_for("bm1880", [""])


@pytest.mark.parametrize("target", ["bm1684", "bm1684x", "bm1880", "dv700"])
@pytest.mark.parametrize("setting", ["clock_hz=550", "clock_hz=1" + 60 * "0"])
def test_clocks_are_hertz(target: str, setting: str) -> None:
    with pytest.raises(UsageError, match=r"clock_hz (is in hertz, 550 cannot be|must be a number)"):
        profile_for(target, [setting])
