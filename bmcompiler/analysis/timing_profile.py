"""Parameters of a chip's timing model as a user gives them: a JSON file, or KEY=VALUE pairs.

A simulator plugin names its parameters in the entry-point group `bmcompiler.timing_profiles` under its target's name: a
dataclass of numbers with defaults, which raises ValueError for values that cannot be. Its analyzer takes an instance
as the keyword argument `profile`. It may have profiles with names, in the mapping `NAMED`, and `standing(name)`: where
the value of a parameter comes from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from bmcompiler.errors import UsageError
from bmcompiler.files.store import read_text
from bmcompiler.plugins.registry import entry_points
from bmcompiler.spelling import spelled
from bmcompiler.text import no_key_twice

OPTION = "timing_profile"
_MOST = 1e30
"""Of any parameter: what is more, infinite or no number cannot be."""


def profile_for(target: str, settings: Iterable[str]) -> Any | None:
    """The timing profile of `target` with settings in place of defaults, None without settings; later ones win.

    Args:
        settings: each the name of a profile of the chip, of a JSON file with one object, or KEY=VALUE pairs with commas
            between them.

    Raises:
        UsageError: a file that cannot be read, a parameter the chip does not have, a value that cannot be; or the chip
            has no such parameters at all.
    """
    texts = list(settings)
    if not texts:
        return None
    loader = entry_points("bmcompiler.timing_profiles").get(target)
    if loader is None:
        raise UsageError(f"the timing model of {target} has no parameters", remedy=f"leave out {spelled(OPTION)}")
    kind = loader()
    named = getattr(kind, "NAMED", {})
    profile = None
    for text in texts:
        if not text.strip():
            raise UsageError(f"{spelled(OPTION)} is empty", remedy="give a JSON file, or KEY=VALUE pairs")
        if text in named:
            profile = named[text]
            continue
        given = _pairs(text) if "=" in text else _file(text, named)
        if given:
            profile = _made(kind, profile, given, target)
    return profile


def need_own(target: str, profile: object) -> None:
    """Raise UsageError for a profile that is not one of the target's timing model."""
    loader = entry_points("bmcompiler.timing_profiles").get(target)
    if loader is None:
        raise UsageError(f"the timing model of {target} has no parameters", remedy="leave out timing_profile")
    if not isinstance(profile, loader()):
        raise UsageError(
            f"the timing profile given is not one of {target}: its parameters are those of another chip",
            remedy=f'make it with bmcompiler.analysis.timing_profile.profile_for("{target}", [...])',
        )


def parameters(target: str) -> dict[str, float]:
    """Names and defaults of the parameters of a target's timing model; empty when it has none."""
    loader = entry_points("bmcompiler.timing_profiles").get(target)
    return {} if loader is None else _defaults(loader())


def named_profiles(target: str) -> dict[str, Any]:
    """The profiles of a target that have a name, the default first; empty when there are none."""
    loader = entry_points("bmcompiler.timing_profiles").get(target)
    return {} if loader is None else dict(getattr(loader(), "NAMED", {}))


def meanings(target: str) -> dict[str, str]:
    """What the parameters of a target's timing model mean, of those that say it (metadata "meaning" of the field)."""
    loader = entry_points("bmcompiler.timing_profiles").get(target)
    kind = () if loader is None else fields(loader())
    return {field.name: field.metadata["meaning"] for field in kind if "meaning" in field.metadata}


def _defaults(kind: Any) -> dict[str, float]:
    given: list[tuple[str, Any]] = [(field.name, field.default) for field in fields(kind)]
    return dict(given)


def _made(kind: Any, base: Any | None, given: Mapping[str, object], target: str) -> Any:
    known = _defaults(kind)
    values = {}
    for key, value in given.items():
        if key not in known:
            raise UsageError(
                f"the timing profile of {target} has no parameter '{key}'", remedy=f"it has {', '.join(known)}"
            )
        values[key] = _number(key, value, whole=isinstance(known[key], int))
    try:
        return kind(**values) if base is None else replace(base, **values)
    except ValueError as error:
        raise UsageError(f"timing profile of {target}: {error}") from error


def _number(key: str, value: object, *, whole: bool) -> float:
    """A number of the type of the parameter's default."""
    found = value
    if isinstance(value, str):
        try:
            found = float(value)
        except ValueError:
            found = None
    wanted = "a whole number" if whole else "a number"
    if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) < _MOST:
        raise UsageError(f"timing profile: {key} must be {wanted}, got {value!r}")
    if not whole:
        return float(found)
    if found != int(found):
        raise UsageError(f"timing profile: {key} must be {wanted}, got {value!r}")
    return int(found)


def _pairs(text: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for pair in text.split(","):
        key, mark, value = pair.partition("=")
        if not (mark and key.strip() and value.strip()):
            raise UsageError(f"{spelled(OPTION)} takes a JSON file or KEY=VALUE,KEY=VALUE, got {text!r}")
        if key.strip() in found:
            raise UsageError(f"{spelled(OPTION)}: {key.strip()} is given twice", remedy="give it once")
        found[key.strip()] = value.strip()
    return found


def _file(name: str, named: Iterable[str]) -> dict[str, object]:
    try:
        values = json.loads(read_text(name), object_pairs_hook=no_key_twice)
    except OSError as error:
        raise UsageError(
            f"the timing profile {name!r} cannot be read: {error.strerror or error}",
            remedy=f"give {''.join(f'{each}, ' for each in named)}a JSON file, or KEY=VALUE pairs",
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the timing profile {name!r} is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise UsageError(f'the timing profile {name!r} must hold one JSON object, as in {{"clock_hz": 5e8}}')
    return values
