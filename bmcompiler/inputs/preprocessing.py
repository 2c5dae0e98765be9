"""How pictures become the input of a compiled model: noted in its file, and told again to who runs it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from bmcompiler.bmodel.layers import PICTURES
from bmcompiler.bmodel.model import BModel
from bmcompiler.errors import FileFormatError, UsageError
from bmcompiler.inputs.advice import FAR_OFF
from bmcompiler.inputs.images import ImageSamples, range_of
from bmcompiler.inputs.source import Named, Samples
from bmcompiler.numeric.arrays import Array
from bmcompiler.options import ImageOptions, Path_, Preprocessing
from bmcompiler.spelling import spelled

_SAME = (("scale", "std"), ("resize", "keep_aspect", "letterbox", "pad"))
"""Options of which one takes the place of the others."""


def note(model: BModel, given: Preprocessing) -> None:
    """Let a model say how pictures become its input: what differs from the defaults, and the layout.

    Raises BMError where the input is no picture that these options fit.
    """
    inputs = model.stages()[0].inputs
    if len(inputs) != 1:
        raise UsageError(f"pictures fit networks with one input, this one has {len(inputs)}")
    found = ImageSamples([], given, inputs[0])
    facts = {each.name: getattr(given, each.name) for each in fields(Preprocessing)}
    said = {name: value for name, value in facts.items() if value != getattr(Preprocessing, name)}
    model.note(PICTURES, json.dumps(said | {"layout": found.layout}))


def decoded(text: str) -> Preprocessing | None:
    """What a model file says; None where it says nothing. Raises FileFormatError for what is no such text."""
    if not text:
        return None
    try:
        facts = json.loads(text)
        facts = {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}
        return Preprocessing(**facts)
    except (ValueError, TypeError, AttributeError, RecursionError, UsageError) as error:
        raise FileFormatError(f"what the model says of pictures is malformed ({error})") from error


def described(text: str, wanted: Named) -> str:
    """A sentence for the user. Raises BMError as `decoded`, and where the input is none of that kind."""
    return ImageSamples([], decoded(text) or Preprocessing(), wanted).description


def merged(path: Path_, told: Mapping[str, Any], noted: Preprocessing | None) -> tuple[ImageOptions, list[str]]:
    """Images with the options that were given, the model's where none were, and a warning about each that differs."""
    if noted is None:
        return ImageOptions(path, **told), []
    instead = {name for group in _SAME if not told.keys().isdisjoint(group) for name in group}
    facts = {each.name: getattr(noted, each.name) for each in fields(Preprocessing) if each.name not in instead}
    facts.update(told)
    options = ImageOptions(path, **facts)
    differ = [
        f"{spelled(name)} is {_word(told[name])}, the model was made for {_word(getattr(noted, name))}"
        for name in told
        if _canonical(told[name]) != _canonical(getattr(noted, name))
    ]
    return options, differ


def _canonical(value: Any) -> Any:
    return (float(value),) if isinstance(value, int | float) else value or None


def _word(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ",".join(f"{n:g}" for n in value) or "none"
    return "none" if value is None else str(value)


def far_from(noted: Preprocessing | None, wanted: Named, limit: float, values: Array | Samples) -> str:
    """A warning about an input that cannot be what the model was made for; "" where nothing is known or wrong.

    Compared is the largest magnitude of the first samples: with what 8 bits hold (`limit`, 0 = it has no such), else
    with what pixels become by the preprocessing of the model. A dark picture is up to 20 times below that.
    """
    if not limit and noted is not None:
        limit = range_of(noted, wanted)
    some = np.asarray(values[:4])
    most = float(np.abs(some).max(initial=0)) if some.dtype.kind in "fiu" else 0.0
    if not (limit and most) or not np.isfinite(most) or limit / FAR_OFF <= most <= limit * FAR_OFF:
        return ""
    text = f"input '{wanted.name}' reaches {most:.4g}, the model was made for values up to {limit:.4g}"
    return f"{text}: check mean and scale"
