"""`bmnet-compile --test-input X --test-reference Y`: is a program what another one says it is?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bmcompiler.cli.common import format_table
from bmcompiler.cli.inputs import inputs_of
from bmcompiler.errors import BMError, RuntimeUseError, UsageError

if TYPE_CHECKING:
    from bmcompiler.inputs import InputData
    from bmcompiler.result import Result

TOLERANCE = (0.99, 0.9)
"""Of cosine and euclid: a relative error of about a tenth."""


class ReferenceTest:
    """The files of a test, read before the compilation so that what is wrong with them costs none.

    Raises UsageError for one without the other, and what reading raises.
    """

    def __init__(self, source: Path | None, reference: Path | None, tolerance: tuple[float, float] | None) -> None:
        from bmcompiler.inputs import open_inputs
        from bmcompiler.inputs.decode import SUFFIXES
        from bmcompiler.inputs.stored import stored_arrays

        if source is None or reference is None:
            raise UsageError("--test-input, --test-reference and --tolerance belong together", remedy="give both files")
        self.source, self.file, self.tolerance = source, reference, tolerance or TOLERANCE
        self.references = {name: array.read() for name, array in stored_arrays(reference).items()}
        self._values = None if source.suffix.lower() in SUFFIXES else open_inputs(source)

    def table(self, result: Result) -> str:
        """What the program computes beside the reference. Raises RuntimeUseError where an output differs."""
        from bmcompiler.evaluation.similarity import compared

        outputs = self._outputs(result.session())
        try:
            found = compared(outputs, self.references, self.tolerance)
        except BMError as error:
            raise error.located(file=self.file) from None
        rows = [(name, each.verdict, f"{each.cosine:.6f}", f"{each.euclid:.6f}") for name, each in found.items()]
        text = format_table(("beside the reference", "verdict", "cosine", "euclid"), rows)
        missed = [name for name, each in found.items() if each.verdict == "differs"]
        if missed:
            click.echo(text, nl=False, err=True)
            raise RuntimeUseError(
                f"the program differs in {', '.join(missed)}: cosine and euclid are not above "
                f"{' and '.join(f'{n:g}' for n in self.tolerance)}; no model is written",
                file=self.file,
                remedy="bmnet-accuracy says which layers lose it; --tolerance takes less",
            )
        rest = [name for name in outputs if name not in found]
        return text + (f"without a reference: {', '.join(rest)}\n" if rest else "")

    def _outputs(self, session: Any) -> dict[str, Any]:
        try:
            inputs = self._inputs(session)
            outputs: dict[str, Any] = session.run(inputs)
        except RuntimeUseError as error:
            raise error.located(file=self.source) from None
        return outputs

    def _inputs(self, session: Any) -> InputData:
        if self._values is not None:
            return self._values.bind(session.inputs)
        return inputs_of(session, "--test-input", None, self.source, {}, None)


def _pair(_ctx: click.Context, _param: click.Parameter, text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        cosine, euclid = map(float, text.split(","))
    except ValueError:
        raise click.BadParameter(f"'{text}' is not like 0.99,0.9") from None
    if not (-1 <= cosine <= 1 and euclid <= 1):
        raise click.BadParameter("cosine is from -1 to 1, euclid at most 1")
    return cosine, euclid


def reference_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options; it gets `test_input`, `test_reference` and `tolerance`."""
    kind = click.Path(path_type=Path, dir_okay=False)
    each = (
        click.option(
            "--test-input",
            metavar="FILE",
            type=kind,
            help="Run the program on this before it is written: .npz, .npy, or a picture.",
        ),
        click.option(
            "--test-reference",
            metavar="REF.npz",
            type=kind,
            help="Compare its outputs with those named here; where one differs, nothing is written.",
        ),
        click.option(
            "--tolerance",
            metavar="COSINE,EUCLID",
            callback=_pair,
            help=f"What both must exceed, of every output.  [default: {','.join(f'{n:g}' for n in TOLERANCE)}]",
        ),
    )
    for option in reversed(each):
        function = option(function)
    return function
