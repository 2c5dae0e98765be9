"""Does a model fit a board, and is this installation whole: what `bmnet-doctor` says.

`facts` are what is publicly known, each with its source; `model` and `installation` make findings of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "wrong", "unknown"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: "chip", "memory", ... state: "wrong" does not fit, "unknown" could not be decided.
        text: what was found. source: where the fact behind it is written; "" for what was looked up here.
    """

    what: str
    state: State
    text: str
    source: str = ""
