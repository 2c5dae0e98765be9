"""The conformance suite of the installed onnx package, per op: `python -m bmcompiler.conformance.onnx_suite`.

A case that raises `NotSupportedError` is skipped and counted under its op and reason; every other case must give the
expected values, types and shapes.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

from bmcompiler.cli.common import command_line, format_table
from bmcompiler.conformance.onnx_backend import NotSupportedError, prepare
from bmcompiler.conformance.onnx_device import float_precision
from bmcompiler.target import find_target

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted", "light")
_LEAST_TOLERANCE = 1e-6
_TOLERANCES = {"f32": 0.0, "f16": 2**-8, None: 2**-5}
"""Of chips that compute in these floats, or in int8: relative, and absolute times the largest value of an output."""
Data = tuple[Sequence[Any], Sequence[Any]]


@dataclass(frozen=True)
class Case:
    """One case: `load` gives the model and its (inputs, expected outputs)."""

    name: str
    kind: str
    op: str
    rtol: float
    atol: float
    load: Callable[[], tuple[onnx.ModelProto, list[Data]]]


@dataclass
class Report:
    """Outcome per op: passed and skipped counts, reasons of skips, and failures as texts."""

    passed: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    failed: dict[str, str] = field(default_factory=dict)
    folded: int = 0
    """Passed cases whose inputs all had to be folded into constants."""

    @property
    def total(self) -> int:
        """Number of cases that passed, of all kinds."""
        return sum(self.passed.values())


def cases(kind: str) -> Iterator[Case]:
    """The cases of one kind of `KINDS`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generated cases divide by zero on purpose
        found: Sequence[Any] = load_model_tests(kind="real" if kind == "light" else kind)
    for case in found:
        if kind == "light":
            load, op = _light(Path(onnx.__file__).parents[1] / case.url), case.name
        elif case.model is not None and case.data_sets is not None:
            load, op = _generated(case), _op_of(case)
        else:
            load, op = _stored(Path(case.model_dir)), case.name
        yield Case(case.name, kind, op, case.rtol, max(case.atol, _LEAST_TOLERANCE), load)


def _op_of(case: Any) -> str:
    """Op type of a node case; for those expanded into a function body, the start of the name."""
    nodes = case.model.graph.node
    if "_expanded" in case.name or len(nodes) != 1:
        return "(expanded)" if "_expanded" in case.name else "(several nodes)"
    return str(nodes[0].op_type)


def _generated(case: Any) -> Callable[[], tuple[onnx.ModelProto, list[Data]]]:
    return lambda: (case.model, [(_plain(inputs), _plain(outputs)) for inputs, outputs in case.data_sets])


def _plain(values: Sequence[Any]) -> list[Any]:
    return [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in values]


def _stored(folder: Path) -> Callable[[], tuple[onnx.ModelProto, list[Data]]]:
    def load() -> tuple[onnx.ModelProto, list[Data]]:
        model = onnx.load(folder / "model.onnx")
        inputs, outputs = (
            [_read(path, info.type) for path, info in zip(_numbered(folder / "test_data_set_0", what), infos)]
            for what, infos in (("input", model.graph.input), ("output", model.graph.output))
        )
        return model, [(inputs, outputs)]

    return load


def _numbered(folder: Path, what: str) -> list[Path]:
    return [folder / f"{what}_{i}.pb" for i in range(len(list(folder.glob(f"{what}_*.pb"))))]


def _read(path: Path, type: onnx.TypeProto) -> Any:
    if not type.HasField("tensor_type"):
        return []
    return numpy_helper.to_array(onnx.load_tensor(path))


def _light(path: Path) -> Callable[[], tuple[onnx.ModelProto, list[Data]]]:
    """ImageNet networks with constant weights, on the runner's own input data."""

    def load() -> tuple[onnx.ModelProto, list[Data]]:
        model = onnx.load(path)
        weights = {tensor.name for tensor in model.graph.initializer}
        inputs = [Runner.generate_dummy_data(i) for i in model.graph.input if i.name not in weights]
        outputs = [path.with_name(f"{path.stem}_output_{i}.pb") for i in range(len(model.graph.output))]
        return model, [(inputs, [numpy_helper.to_array(onnx.load_tensor(p)) for p in outputs])]

    return load


def judge(
    chosen: Sequence[Case],
    report: Report | None = None,
    device: str = "CPU",
    host: bool = False,
    statistics: str = "measured",
) -> Report:
    """Run cases into a report; with `host` the host may run layers that a chip does not. statistics: see `prepare`.

    The tolerance of a chip that computes in fp16 or int8 is wider.
    """
    report = Report() if report is None else report
    least = 0.0 if device == "CPU" else _TOLERANCES[float_precision(find_target(device))]
    for case in chosen:
        try:
            model, sets = case.load()
            runner = prepare(model, device, host=host, statistics=statistics)
            for inputs, wanted in sets:
                _compare(runner.run(inputs), wanted, case, least)
        except NotSupportedError as error:
            report.skipped[case.op] += 1
            report.reasons[f"{(error.kind or 'model').split(',')[0]}: {error.reason}"].append(case.name)
        # whatever else a case raises is its failure, not the end of the suite
        except Exception as error:
            report.failed[case.name] = f"{type(error).__name__}: {str(error)[:300]}"
        else:
            report.passed[case.op] += 1
            report.folded += runner.inputs_kept == 0
    return report


def _compare(got: Sequence[np.ndarray], wanted: Sequence[Any], case: Case, least: float) -> None:
    """Raises AssertionError. Fewer outputs may be wanted than the model has; `least` is a relative tolerance."""
    if len(got) < len(wanted):
        raise AssertionError(f"{len(got)} outputs, expected {len(wanted)}")
    for ours, theirs in zip(got, wanted):
        want = np.asarray(theirs)
        if ours.shape != want.shape or ours.dtype != want.dtype:
            raise AssertionError(f"{ours.dtype}{list(ours.shape)}, expected {want.dtype}{list(want.shape)}")
        largest = float(np.abs(want).max(initial=0, where=np.isfinite(want))) if least else 0.0
        np.testing.assert_allclose(ours, want, rtol=max(case.rtol, least), atol=max(case.atol, least * largest))


@click.command()
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only these kinds of cases.")
@click.option("--only", default="", help="Only cases whose name contains this text.")
@click.option("--ops/--no-ops", default=True, help="Counts per op.")
@click.option("--device", default="CPU", help="CPU, or a target, whose simulator runs the cases.")
@click.option("--host", is_flag=True, help="The host may run layers that the device does not.")
@click.option(
    "--bytes",
    "in_bytes",
    is_flag=True,
    help="In int8 norms, softmax and recurrent layers are the chip's, whatever that costs.",
)
@click.option("--reasons", is_flag=True, help="Why cases are skipped, most frequent first.")
@click.option("--json", "as_json", is_flag=True, help="Totals as JSON.")
def main_command(
    kinds: tuple[str, ...],
    only: str,
    ops: bool,
    device: str,
    host: bool,
    in_bytes: bool,
    reasons: bool,
    as_json: bool,
) -> int:
    """Run the onnx backend suite on the op-level interpreter, or on the simulator of a chip.

    On a chip a case counts as unsupported when a layer of it would run on the host, unless --host allows it. With
    --bytes the pass legalize is told statistics=bytes: in eight bits these ops may cost much, so that by default the
    host computes them where the inputs of a case show that. Exit status 1 when a case fails.
    """
    totals: dict[str, dict[str, int]] = {}
    whole, statistics = Report(), "bytes" if in_bytes else "measured"
    for kind in kinds or KINDS:
        chosen = [case for case in cases(kind) if only in case.name]
        part = judge(chosen, device=device, host=host, statistics=statistics)
        totals[kind] = {
            "passed": part.total,
            "skipped": sum(part.skipped.values()),
            "failed": len(part.failed),
            "all inputs folded": part.folded,
        }
        whole.passed += part.passed
        whole.skipped += part.skipped
        whole.failed.update(part.failed)
        for reason, names in part.reasons.items():
            whole.reasons[reason] += names
    if as_json:
        click.echo(json.dumps(totals, indent=1))
        return int(bool(whole.failed))
    if ops:
        names = sorted({*whole.passed, *whole.skipped})
        click.echo(
            format_table(["op", "passed", "unsupported"], [[n, whole.passed[n], whole.skipped[n]] for n in names])
        )
    if reasons:
        for reason, found in sorted(whole.reasons.items(), key=lambda item: -len(item[1])):
            click.echo(f"{len(found):5}  {reason}  ({found[0]})")
    for name, text in whole.failed.items():
        click.echo(f"FAILED {name}: {text}")
    columns = list(next(iter(totals.values())))
    click.echo(format_table(["kind", *columns], [[kind, *counts.values()] for kind, counts in totals.items()]))
    return int(bool(whole.failed))


main = command_line(main_command, "python -m bmcompiler.conformance.onnx_suite")

if __name__ == "__main__":
    main()
