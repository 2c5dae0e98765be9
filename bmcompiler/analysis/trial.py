"""What a module costs as a program, known before its compilation is over: for passes that choose by cycles."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.analysis.profile import Timing, analysis_of
from bmcompiler.errors import BMError, UsageError
from bmcompiler.ir import Module, copy_module
from bmcompiler.passmanager import PassContext, Pipeline, run_pipeline
from bmcompiler.target import Target


@dataclass(frozen=True)
class Trial:
    """Compiles copies of modules to the end."""

    target: Target
    pipeline: Pipeline
    level: int

    def timing(self, module: Module, behind: str) -> Timing | None:
        """Estimated time of a module that stands for what the pass `behind` and those before it make.

        None where it cannot be compiled, or nothing can time it. Raises UsageError where it is nothing that the passes
        behind can follow.
        """
        passes = tuple(self.pipeline)
        after = [each.name for each in passes].index(behind) + 1
        copy = copy_module(module)
        try:
            run_pipeline(copy, Pipeline(passes[after:]), PassContext(self.target, trial=self), ran=passes[:after])
            model = self.target.compile([copy], self.level).model
            analysis = analysis_of(self.target.name, model, profile=self.target.profile)
            return None if analysis is None else analysis.timing()
        except UsageError:  # an order of passes that makes no sense is a fault of ours
            raise
        except BMError:
            return None
