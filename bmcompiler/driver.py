"""From files, or a module in memory, to a compiled model: what commands and `bmcompiler.compile` share.

    result = compile_network("lenet.prototxt", "lenet.caffemodel", Options(target=CHIP, data="calib.npz"))
    result = compile_ir(module, ModuleOptions(target=CHIP, data={"x": samples}))

Frontends, passes and targets are found by name through the registry; this module imports none of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bmcompiler.analysis.timing_profile import need_own
from bmcompiler.analysis.trial import Trial
from bmcompiler.bmodel.as_read import AsRead
from bmcompiler.conditions import is_quantized
from bmcompiler.errors import BMError, ShapeError, UnsupportedError, UsageError, WrongProgramError
from bmcompiler.finite_weights import need_finite_weights
from bmcompiler.frontend import file_of, frontend_for
from bmcompiler.garbage import seldom_collected
from bmcompiler.ir import Module, copy_module, verify_module
from bmcompiler.ir.keys import GROUP, SLICES, STATED_NAMES
from bmcompiler.ops import need_tensor_ops
from bmcompiler.options import Judged, ModuleOptions, Network, Options, Path_, Shapes
from bmcompiler.passmanager import PassContext, Pipeline, run_pipeline
from bmcompiler.plugins.registry import failures
from bmcompiler.result import Result
from bmcompiler.spelling import spelled
from bmcompiler.target import Compiled, FoundGroups, Target, find_target
from bmcompiler.told import said
from bmcompiler.version import version

if TYPE_CHECKING:
    from bmcompiler.accuracy.check import AccuracyCheck
    from bmcompiler.inputs import Data
    from bmcompiler.proof.prove import Proof
    from bmcompiler.quant.table import CalibrationTable

Reader = Callable[[], Module]
"""Gives a net as it is in its file."""


def load_network(
    model: Network,
    weights: Path_ | None = None,
    *,
    shapes: Shapes | None = None,
    outputs: Sequence[str] | None = None,
    name: str | None = None,
) -> Module:
    """Read a network as IR, with the frontend that its file ending calls for.

    Args:
        model: .onnx, .prototxt or .mlir file, or an `onnx.ModelProto` or its bytes.
        weights: the .caffemodel of a .prototxt.
        shapes: one shape per input, where the file leaves sizes open or others are wanted.
        outputs: tensors or layers that become the outputs. name: of the net, None for that in the file.

    Raises:
        BMError: naming the file.
    """
    file = file_of(model)
    for path in (file, weights):
        if path is not None and not Path(path).is_file():
            reason = "is a folder, not a file" if Path(path).is_dir() else "no such file"
            raise UnsupportedError(reason, file=path, remedy="check the path")
    frontend = frontend_for(model)
    wanted = None if outputs is None else list(outputs)

    def load(listed: list[tuple[int, ...]] | None) -> Module:
        module: Module = frontend.load(cast(Path_, model), weights, shapes=listed, outputs=wanted, name=name)
        return module

    listed = None if shapes is None else [tuple(shape) for shape in shapes]
    try:
        module = load(listed)
    except ShapeError:
        from bmcompiler.quant.other_batch import with_other_batch

        rebatched = with_other_batch(load, listed)
        if rebatched is None:
            raise
        module = rebatched
    verify_module(module)
    try:
        need_tensor_ops(module)
        need_finite_weights(module)
    except BMError as error:
        raise error.located(file=file if weights is None else weights) from None
    return module


def compile_network(model: Network, weights: Path_ | None, options: Options) -> Result:
    """Load, optimise, quantize and generate code. Raises BMError; writes nothing but `save_ir`."""
    read = partial(load_network, model, weights, outputs=options.outputs, name=options.name)
    programs = options.programs
    try:
        return compile_readers([partial(read, shapes=shapes) for shapes in programs], options, file_of(model))
    except ShapeError as error:
        if error.remedy is None and options.shapes:
            error.remedy = _other_sizes(programs)
        raise


def _other_sizes(programs: Sequence[Shapes | None]) -> str:
    """What to do where the sizes that were asked for do not go through the net."""
    sizes = [len({tuple(shape) for shape in shapes}) for shapes in zip(*(program or () for program in programs))]
    if sum(count > 1 for count in sizes) > 1 and prod(sizes) == len(programs):  # each size with each other
        return "sizes of several inputs that belong together need one name: [[1,n={32,64,128}],[1,n]]"
    return (
        "what has a fixed size in the net, as a table of positions, takes no other: give that, or export the net with "
        "axes that vary"
    )


def compile_ir(module: Module, options: ModuleOptions) -> Result:
    """Compile a module, which stays as it is. Raises BMError, VerifyError for a module that breaks a rule of the IR."""
    return compile_readers([partial(_copied, module)], options)


def _copied(module: Module) -> Module:
    verify_module(module)
    need_tensor_ops(module)
    need_finite_weights(module)
    return copy_module(module)


def compile_readers(
    readers: Sequence[Reader], options: ModuleOptions, file: Path_ | None = None, groups: FoundGroups | None = None
) -> Result:
    """Programs that share weights; what a reader gives is changed. groups: `Target.found_groups`. Raises BMError."""
    with seldom_collected:
        return _compiled(readers, options, file, groups)


def _compiled(
    readers: Sequence[Reader], options: ModuleOptions, file: Path_ | None, groups: FoundGroups | None
) -> Result:
    told, pictures = said(options), options.preprocess or options.images
    if options.fuse_preprocess is not None:
        from bmcompiler.inputs.camera import fused

        readers, options, pictures = fused(readers, options)
    target = find_target(options.target, options.timing_profile)
    if options.timing_profile is not None:
        need_own(options.target, options.timing_profile)
    if groups is not None:
        target.found_groups = groups
    pipeline = pipeline_for(target, options)
    timing: list[tuple[str, float]] = []
    began = time.process_time()
    ctx = PassContext(target, data_of(options), table_of(options), options.progress, options.pool, log=options.log)
    ctx.trial, ctx.decisions = Trial(target, pipeline, options.opt), _decisions(options)
    check = _accuracy_check(target, ctx, pipeline)
    seen = AsRead(len(readers) > 1, pictures)
    modules = [_lowered(read, options, pipeline, ctx, timing, file, check, seen) for read in readers]
    start = time.perf_counter()
    try:
        compiled: Compiled = target.compile(modules, options.opt)
    except BMError as error:
        raise error.located(file=file) from None
    timing.append(("generate code", time.perf_counter() - start))
    spent = sum(seconds for _, seconds in timing)
    if options.pool is None:  # a busy machine lets it wait, which is no work
        spent = min(spent, time.process_time() - began)
    checked = _checked(compiled, modules, readers, target, options, ctx, spent)
    if checked.seconds:
        timing.append(("check", checked.seconds))
    seen.note(compiled.model, modules[0])
    if options.save_ir is not None:
        from bmcompiler.files.mlir import save_module

        save_module(modules[0], Path(options.save_ir))
    accuracy = None if check is None else check.found
    if accuracy is not None:
        timing.append(("compare with float", accuracy.seconds))
    ctx.notes += [f"warning: {text}" for text in (accuracy or checked).warnings]
    if accuracy is not None and options.max_error is not None:
        ctx.notes += [f"warning: {text}" for text in accuracy.not_kept(options.max_error / 100)]
    ctx.notes += [f"warning: {error.reason}" for error in failures()]
    precision = "" if options.pipeline is not None else options.quantize or target.precisions[0]
    compiled.model.producer = producer(options, precision)
    return Result(
        compiled.model,
        modules[0],
        target.name,
        compiled.rows,
        compiled.totals,
        ctx.notes,
        timing,
        compiled.groups,
        accuracy,
        precision,
        readers[0],
        checked,
        told,
    )


def _checked(
    compiled: Compiled,
    modules: Sequence[Module],
    readers: Sequence[Reader],
    target: Target,
    options: ModuleOptions,
    ctx: PassContext,
    spent: float,
) -> Proof:
    """The proof of the programs, before anything is written; `spent`: seconds of work so far."""
    from bmcompiler.proof.prove import proven

    try:
        return proven(
            compiled.model,
            modules,
            target,
            sources=readers,
            check=options.check,
            data=ctx.data,
            level=options.opt,
            commands=sum(row.commands for row in compiled.rows) * len(modules),  # rows are of the first program
            spent=spent,
        )
    except WrongProgramError as error:
        if options.keep_bad is not None:
            from bmcompiler.proof.bundle import keep

            keep(error, target.name, options.opt, Path(options.keep_bad))
        raise


def producer(options: ModuleOptions, precision: str) -> str:
    """What a model file says of its making: version and options, no paths, so that equal input gives equal bytes."""
    said = {"precision": precision or None, "opt": options.opt, "pipeline": options.pipeline}
    said |= {name: getattr(options, name) for name in ("method", "io_dtype", "max_error", "max_cycles")}
    parts = [f"{name} {value}" for name, value in said.items() if value is not None]
    return ", ".join([f"bmcompiler {version()}", *parts])


def _accuracy_check(target: Target, ctx: PassContext, pipeline: Pipeline) -> AccuracyCheck | None:
    if ctx.data is None:
        return None
    from bmcompiler.accuracy.check import AccuracyCheck

    return AccuracyCheck(target, ctx, pipeline)


def _lowered(
    read: Reader,
    options: ModuleOptions,
    pipeline: Pipeline,
    ctx: PassContext,
    timing: list[tuple[str, float]],
    file: Path_ | None,
    check: AccuracyCheck | None,
    seen: AsRead,
) -> Module:
    """One input shape: read the net and run the passes. The first shape's thresholds serve the others.

    seen: gets the net before the passes.
    """
    start = time.perf_counter()
    module = read()
    timing.append(("read", time.perf_counter() - start))
    try:
        seen.look(module, ctx.data)
    except BMError as error:
        raise error.located(file=file) from None
    ctx.notes += [str(note) for note in module.attributes.pop("notes", ())]
    if options.pipeline is None and is_quantized(module):  # as `--save-ir` writes it: the default passes have run
        pipeline = Pipeline.parse("dead-code")
    elif options.pipeline is None:
        _forget_groups(module)
    if ctx.data is not None and ctx.table is None and any(each.name == "calibrate" for each in pipeline):
        from bmcompiler.inputs.advice import data_notes

        _hold_back(module, ctx, check)
        ctx.notes += data_notes(module, ctx.data)
    try:
        run_pipeline(
            module,
            pipeline,
            ctx,
            print_ir_after=options.print_ir_after,
            verify_each=options.verify_each,
            timing=timing,
            after=check,
        )
    except BMError as error:
        raise error.located(file=file) from None
    verify_module(module)
    dropped = len(module.main.attributes.get(STATED_NAMES, ()))
    if dropped and not any(each.name == "calibrate" for each in pipeline):
        ctx.notes.append(
            f"the model states integers for {dropped} tensors (QuantizeLinear); they are left out, it is computed in "
            f"float. {spelled('quantize', 'int8')} keeps them"
        )
    return module


def _decisions(options: ModuleOptions) -> Judged:
    """What outputs decide. Raises UsageError for a kind that is none."""
    if options.decisions == ModuleOptions.decisions:
        return options.decisions
    from bmcompiler.evaluation.decisions import checked_kind

    return checked_kind(options.decisions)


def _hold_back(module: Module, ctx: PassContext, check: AccuracyCheck | None) -> None:
    """Leave some samples to the check alone, where there are enough."""
    from bmcompiler.inputs.held_back import parted
    from bmcompiler.quant.data import bind_data, check_data

    assert ctx.data is not None, "the caller asked"
    bound = bind_data(module.main, ctx.data)
    if check is None or not check.measures:
        return
    parts = parted(bound)
    if parts is not None:
        check_data(module.main, bound)  # what is wrong with samples is said of all of them
        ctx.data, check.held_back = parts


def _forget_groups(module: Module) -> None:
    """Of a float net that was compiled before: its passes run again, and find the groups anew."""
    for op in module.walk():
        for note in (GROUP, SLICES):
            op.attributes.pop(note, None)


def pipeline_for(target: Target, options: ModuleOptions) -> Pipeline:
    """The passes of a compilation. Raises UsageError for options that the target has no use for."""
    if options.pipeline is not None:
        return Pipeline.parse(options.pipeline)
    precision = options.quantize or target.precisions[0]
    pipeline = Pipeline.parse(target.pipeline(precision, options.opt))
    changes: dict[str, dict[str, Any]] = {"calibrate": {}, "quantize": _quantize_options(options)}
    if options.method is not None:
        changes["calibrate"]["method"] = options.method
    for option, wanted, kind, taken in (
        ("quant_table", options.quant_table, "int8", any(each.takes_table for each in pipeline)),
        ("io_dtype", options.io_dtype, "int8 with real scales", any(each.takes_io for each in pipeline)),
    ):
        if wanted is not None and not taken:
            raise UsageError(
                f"{spelled(option)} belongs to {kind}; {target.name} in {precision} has none",
                remedy=f"leave out {spelled(option)}",
            )
    aims = {"max_error": options.max_error, "max_cycles": options.max_cycles}
    changes["quantize"] |= {name: value for name, value in aims.items() if value is not None}
    if options.max_error is not None:
        changes["watch-ranges"] = {"max_error": options.max_error}
    return Pipeline(tuple(replace(each, **changes.get(each.name, {})) for each in pipeline))


def _quantize_options(options: ModuleOptions) -> dict[str, Any]:
    """Options of the pass quantize."""
    found: dict[str, Any] = {}
    if options.quant_table is not None:
        found["table"] = os.fspath(options.quant_table)
    if options.io_dtype is not None:
        found["io"] = "integer" if options.io_dtype == "int8" else "float"
    return found


def data_of(options: ModuleOptions) -> Data | None:
    """The samples that the options name, None without any. Raises UsageError for options that exclude each other."""
    if options.images is not None and options.data is not None:
        raise UsageError("calibration data and images exclude each other")
    given = options.images if options.images is not None else options.data
    if given is None:
        if options.limit is not None:
            raise UsageError("there is a limit of samples, but there are no samples")
        return None
    if not isinstance(given, Mapping):
        from bmcompiler.inputs import open_inputs

        return open_inputs(given, options.limit)
    if options.limit is None:
        return given
    from bmcompiler.inputs.limit import first_samples

    return first_samples(given, options.limit)


def table_of(options: ModuleOptions) -> CalibrationTable | None:
    """The calibration table that the options name, None without one."""
    if options.table is None:
        return None
    from bmcompiler.quant.table import load_table

    return load_table(os.fspath(options.table))
