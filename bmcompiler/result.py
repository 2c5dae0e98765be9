"""What a compilation gives: the model, facts on its layers, and what to do next with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bmcompiler.errors import UnsupportedError, UsageError
from bmcompiler.ir import Module
from bmcompiler.target import GroupInfo, LayerRow

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from bmcompiler.accuracy.check import Accuracy
    from bmcompiler.bmodel import BModel
    from bmcompiler.inputs.source import Samples
    from bmcompiler.numeric.arrays import Array
    from bmcompiler.options import Path_
    from bmcompiler.proof.prove import Proof
    from bmcompiler.runtime.session import Session

_WARNING = "warning: "


@dataclass(frozen=True)
class Difference:
    """How far an output is from its reference.

    Attributes:
        equal: share of equal elements. largest: largest absolute difference. error: Euclidean length of the
            difference for one of the reference. cosine: of the angle between both.
    """

    equal: float
    largest: float
    error: float
    cosine: float


@dataclass(repr=False)
class Result:
    """A compiled model and what there is to say about it.

        result = bmcompiler.compile("net.onnx", target=CHIP, data="calib.npz")
        result                      # in a notebook: the report; as text: the summary
        result.run(images)          # on the simulator
        result.compare(images)      # how far that is from the network in float
        result.save("net.bmodel")

    Attributes:
        model: the container object.
        module: the IR the first program was generated from; run it with `bmcompiler.interpreter`.
        rows, totals: per-layer facts and sums; see `LayerRow`.
        notes: sentences of frontends and passes worth reading.
        timing: (stage, seconds) in order.
        groups: which layers are computed together, see `Compiled`.
        accuracy: how far a network that was quantized with samples is from float, None for others.
        precision: what the network computes in, as `quantize` names it; empty with a pipeline of the caller's own.
        source: reads the network of the first program as it was before the passes; None when that is not known.
        checked: whether the program was proven on samples, None for a result that was not compiled.
        options: what the compilation was told other than the defaults, in words, by name.
    """

    model: BModel
    module: Module
    target: str
    rows: list[LayerRow]
    totals: dict[str, int]
    notes: list[str]
    timing: list[tuple[str, float]]
    groups: list[GroupInfo] | None = None
    accuracy: Accuracy | None = None
    precision: str = ""
    source: Callable[[], Module] | None = None
    checked: Proof | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def warnings(self) -> list[str]:
        """The notes that are warnings; they begin with "warning: "."""
        return [note for note in self.notes if note.startswith(_WARNING)]

    def save(self, path: Path_) -> None:
        """Write the model file.

        Raises UnsupportedError for a net without inputs, FileFormatError for a model that no reader takes, OSError.
        """
        from bmcompiler import bmodel

        self._need_inputs(path)
        bmodel.save(self.model, path)

    def to_bytes(self) -> bytes:
        """The model file in memory, as `Session` takes it. Raises as `save`."""
        self._need_inputs(None)
        return b"".join(self.model.parts(file=None))

    def _need_inputs(self, path: Path_ | None) -> None:
        if not self.module.main.arguments:
            raise UnsupportedError(
                "a network without inputs gives constants, and model files have none",
                file=path,
                remedy="give the network an input",
            )

    def session(self, device: int | str = 0, *, fast: bool = False) -> Session:
        """The model on a device of its chip, see `bmcompiler.runtime.Session`."""
        from bmcompiler.plugins.registry import lookup

        made: Session = lookup("bmcompiler.runtimes", "session", "runtime")(self.model, device, fast=fast)
        return made

    def run(self, inputs: Mapping[str, ArrayLike | Samples] | ArrayLike) -> dict[str, Array]:
        """Outputs by name for inputs by name (or one array for a net with one input), any number of samples.

        Raises RuntimeUseError as `Session.run` does.
        """
        return self.session().run(inputs)

    def compare(
        self, inputs: Mapping[str, ArrayLike | Samples] | ArrayLike, reference: Mapping[str, ArrayLike] | None = None
    ) -> dict[str, Difference]:
        """How far the outputs are from `reference`, by default from the network before the passes.

        Args:
            inputs: as for `run`.
            reference: arrays by output name, of as many elements as the outputs.

        Raises:
            RuntimeUseError: inputs or references that do not fit.
            UsageError: there is no reference, and the network before the passes is not known.
        """
        import numpy as np

        from bmcompiler.evaluation.difference import difference
        from bmcompiler.evaluation.job import run_network

        session = self.session()
        given = {name: np.asarray(value) for name, value in session.named(inputs).items()}
        found = session.run(given)
        if reference is None:
            if self.source is None:
                raise UsageError("the network before the passes is not known", remedy="pass reference")
            reference = run_network(self.source(), given)
        return {name: Difference(*difference(name, found, wanted)) for name, wanted in reference.items()}

    def report(self, path: Path_) -> None:
        """Write the report (.html, .json, or .csv of the layers). Raises UsageError for other endings, OSError."""
        from bmcompiler.report import write_report

        write_report(self, path)

    def layers(self) -> str:
        """The table of all layers, and all that the summary shortens."""
        from bmcompiler.report.summary import layer_tables

        return layer_tables(self)

    def __repr__(self) -> str:
        from bmcompiler.report.summary import summary

        return summary(self, more="print(result.layers())").rstrip("\n")

    def _repr_html_(self) -> str:
        """The report in a frame of its own, so that its style stays inside."""
        from html import escape

        from bmcompiler.report import report_html

        page = escape(report_html(self), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 640px; border: 0"></iframe>'
