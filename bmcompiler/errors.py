"""Every error a user can cause or see: one class per cause, one sentence per message.

`str(error)` is the whole message: "FILE: layer 'NAME' (TYPE): reason. Remedy: ...". Commands print it on stderr and
exit with status 1, or 2 for a `UsageError` (`bmcompiler.cli.common`); library users catch `BMError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bmcompiler.text import some_names

if TYPE_CHECKING:
    from bmcompiler.proof.locate import Part

_LINES = 12
"""Of a network that is refused for many reasons, how many are told."""


class BMError(Exception):
    """Base of all reported errors.

    Args:
        reason: what is wrong, one sentence without a leading capital rule; no trailing newline.
        file: path of the file the error is about.
        layer: source layer (or op) name.
        kind: source layer (or op) type.
        remedy: what the user can do about it.
    """

    def __init__(
        self,
        reason: str,
        *,
        file: object = None,
        layer: str | None = None,
        kind: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.reason, self.file, self.layer, self.kind, self.remedy = reason, file, layer, kind, remedy
        super().__init__(reason)

    def __str__(self) -> str:
        where = f"{self.file}: " if self.file is not None else ""
        if self.layer is not None:
            where += f"layer '{self.layer}'" + (f" ({self.kind})" if self.kind else "") + ": "
        text = where + self.reason
        if self.remedy:
            text += ("" if text.endswith((".", "!", "?")) else ".") + f" Remedy: {self.remedy}"
        return text

    def located(self, *, file: object = None, layer: str | None = None, kind: str | None = None) -> BMError:
        """Fill in what the raiser did not know; keeps what is already set. Returns self, for `raise e.located(...)`."""
        self.file = self.file if self.file is not None else file
        self.layer = self.layer if self.layer is not None else layer
        self.kind = self.kind if self.kind is not None else kind
        return self


class UsageError(BMError):
    """Options or arguments that cannot be combined or are out of range."""


class UnknownOptionError(UsageError, TypeError):
    """An argument that a function does not have."""


class FileFormatError(BMError):
    """A file is truncated, malformed, or of another kind than expected."""


class UnsupportedError(BMError):
    """Well-formed input that this tool (or the chosen target) cannot handle.

    Attributes:
        refusals: of a network with several layers that are refused the error of each, in order; else empty. The
            message has a line for each reason.
    """

    refusals: Sequence[UnsupportedError] = ()

    @staticmethod
    def of_all(refusals: Sequence[UnsupportedError]) -> UnsupportedError:
        """The error itself where there is one, else one that lists them."""
        if len(refusals) == 1:
            return refusals[0]
        error = UnsupportedError(f"{len(refusals)} layers are not supported")
        error.refusals = tuple(refusals)
        return error

    def __str__(self) -> str:
        if not self.refusals:
            return super().__str__()
        groups: dict[tuple[str | None, str, str | None], list[str]] = {}
        for each in self.refusals:
            groups.setdefault((each.kind, each.reason, each.remedy), []).append(each.layer or "")
        lines = [f"{BMError(self.reason, file=self.file)}:"]
        for (kind, reason, remedy), layers in list(groups.items())[:_LINES]:
            count = f"{len(layers)} layers" if len(layers) > 1 else "layer"
            lines.append(f"  {count} {some_names(layers)} ({kind}): {BMError(reason, remedy=remedy)}")
        more = sum(map(len, list(groups.values())[_LINES:]))
        lines += [f"  and {more} more"] if more else []
        return "\n".join(lines + ([f"Remedy: {self.remedy}"] if self.remedy else []))


class ShapeError(BMError):
    """Shapes that do not fit together."""


class VerifyError(BMError):
    """IR that breaks a rule of the IR or of an op."""


class CalibrationError(BMError):
    """Calibration data or tables that cannot be right."""


class EncodingError(BMError):
    """A value that does not fit its instruction field, or a kernel call that breaks a constraint of the chip."""


class SimulatorError(BMError):
    """A command that reads or writes outside its memory, or cannot be decoded.

    Attributes:
        place: where the command is (`bmcompiler.instructions.order.Place`), None where that is not known.
    """

    place: object = None


class WrongProgramError(BMError):
    """A compiled program that is not what its network means: an error of this compiler, found before it was written.

    Attributes:
        part: the smallest part of the network that shows it (`bmcompiler.proof.locate.Part`), None where none does.
    """

    part: Part | None = None


class RuntimeUseError(BMError):
    """Input data or calls that do not fit the loaded model."""
