"""A model folder to a bundle: each net compiled, those that belong together with their weights stored once."""

from __future__ import annotations

import gc
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bmcompiler import bmodel
from bmcompiler.bmodel import BModel
from bmcompiler.errors import BMError, UsageError
from bmcompiler.files.kinds import JSON
from bmcompiler.files.store import atomic_output, make_folder
from bmcompiler.llm.groups import BundleOptions, check_positions, compile_group, net_groups
from bmcompiler.llm.model import LanguageModel, open_model
from bmcompiler.options import Progress
from bmcompiler.parallel import open_pool
from bmcompiler.parallel.task import NamedTask
from bmcompiler.proof.prove import Proof
from bmcompiler.target import FoundGroups
from bmcompiler.version import version

__all__ = ["BundleOptions", "CompiledBundle", "compile_bundle"]

_Part = tuple[BModel, Proof]
"""Nets with the same weights, and what was proven of them."""


@dataclass(frozen=True)
class CompiledBundle:
    """A bundle, and what was proven of it.

    Attributes:
        model: the container object, to save or to run.
        proofs: what was proven of the programs of nets with the same weights, by the names of these nets.
    """

    model: BModel
    proofs: Mapping[tuple[str, ...], Proof]

    @property
    def proof(self) -> Proof | None:
        """Of all programs that were compared: the fewest samples, the sums least asked. None where none was."""
        done = [each for each in self.proofs.values() if each.samples]
        if not done:
            return None
        return Proof(
            min(each.samples for each in done),
            all(each.of_data for each in done),
            sum(each.programs for each in done),
            sum(each.seconds for each in done),
            one_row_in=max(each.one_row_in for each in done),
        )

    @property
    def unchecked(self) -> Mapping[str, str]:
        """Why programs were not compared, by net."""
        return {name: each.reason for names, each in self.proofs.items() if not each.samples for name in names}


def compile_bundle(
    folder: str | os.PathLike[str] | LanguageModel,
    options: BundleOptions | None = None,
    *,
    progress: Progress | None = None,
    parts: Path | None = None,
    jobs: int = 1,
) -> CompiledBundle:
    """The bundle of a model folder, for the chip that language models run on.

    Args:
        parts: a folder for finished nets, from which the bundle is mapped, so that memory holds few of them at a time.
            What lies there of an equal compilation, as one that was interrupted left it, is not compiled again.
        jobs: processes that compile nets; more than one need `parts`, and the path of the folder.

    Raises:
        FileFormatError, UnsupportedError: of the folder; see `open_model`.
        UnsupportedError: more tokens than the model was made for.
        UsageError: jobs that cannot be.
        BMError: a net that cannot be compiled.
    """
    model = folder if isinstance(folder, LanguageModel) else open_model(folder)
    chosen = options or BundleOptions()
    check_positions(model.architecture, chosen, model.path)
    if jobs != 1 and (parts is None or isinstance(folder, LanguageModel)):
        raise UsageError("processes share nets by files", remedy="give the folder of the model, and one for its parts")
    groups = list(net_groups(model, chosen))
    if parts is None or isinstance(folder, LanguageModel):
        known: FoundGroups = {}
        made: Iterator[_Part] = (compile_group(model, names, chosen, known) for names in _watched(groups, progress))
    else:
        made = _from_files(model, chosen, groups, parts, jobs, progress)
    models: list[BModel] = []
    proofs: dict[tuple[str, ...], Proof] = {}
    try:
        for names, (found, proof) in zip(groups, made, strict=True):
            models.append(found)
            proofs[names] = proof
    except BMError as error:
        raise error.located(file=model.path) from error.__cause__
    first, *others = models
    bundle = first.combined(others)
    bundle.producer = f"bmcompiler {version()}, language model, {chosen.precision.name}"
    return CompiledBundle(bundle, proofs)


def _watched(groups: list[tuple[str, ...]], progress: Progress | None) -> Iterator[tuple[str, ...]]:
    return iter(groups) if progress is None else progress(groups, "nets", len(groups))


@dataclass(frozen=True)
class _Work:
    """What a process compiles, and how the layers it has compiled are computed."""

    model: LanguageModel
    known: FoundGroups = field(default_factory=dict)


@dataclass(frozen=True)
class _PartTask(NamedTask[_Work, tuple[str, ...], Proof]):
    """Writes the file of nets with the same weights, unless it is there; its result is what was proven of them."""

    folder: Path
    options: BundleOptions
    parts: Path

    def load(self) -> _Work:
        return _Work(open_model(self.folder))

    def compute(self, state: _Work, part: tuple[str, ...]) -> Proof:
        file, done = part_file(self.parts, part[0]), self.parts / f"{part[0]}.json"
        if not done.is_file():
            found, proof = compile_group(state.model, part, self.options, state.known)
            bmodel.save(found, file)
            with atomic_output(done, JSON) as stream:
                stream.write(json.dumps(asdict(proof)))
            state.model.let_go()
            del found
            gc.collect()  # ops and values of nets are cycles, and hold hundreds of megabytes of weights
        return Proof(**json.loads(done.read_text(encoding="utf-8")))


def part_file(parts: Path, net: str) -> Path:
    """Where the nets that begin with this one lie."""
    return parts / f"{net}.bmodel"


def _from_files(
    model: LanguageModel,
    options: BundleOptions,
    groups: list[tuple[str, ...]],
    parts: Path,
    jobs: int,
    progress: Progress | None,
) -> Iterator[_Part]:
    own = parts / _identity(model, options)
    make_folder(own)
    task = _PartTask(model.path, options, own)
    proofs: dict[int, Proof] = {}
    with open_pool(jobs) as pool:
        done = pool.run(task, enumerate(groups))
        for number, proof in done if progress is None else progress(done, "nets", len(groups)):
            proofs[number] = proof
    task.forget()
    for number, names in enumerate(groups):
        yield bmodel.load(part_file(own, names[0])), proofs[number]


def _identity(model: LanguageModel, options: BundleOptions) -> str:
    """What tells a compilation from others: version, options, and the files of the folder by size and date."""
    facts = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in sorted(model.files())]
    return hashlib.sha256(repr((version(), options, facts)).encode()).hexdigest()[:16]
