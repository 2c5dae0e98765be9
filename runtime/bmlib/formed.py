"""The functions of BMLib that are forms of others (`forms`), under their names."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, unwrap
from typing import Any

from bmcompiler.capi.api import Api, Prototype
from bmcompiler.runtime.bmlib import cards, functions, kernels, mapping
from bmcompiler.runtime.bmlib.types import BMLIB, FORMS, served


def of_table(api: Api, prototype: Prototype, act: Callable[..., Any], about: str) -> Callable[..., Any]:
    """A function with the name and the parameters of a declaration, served as those that are written out."""
    names = [one.name for one in prototype.parameters if not one.out]
    signature = Signature([Parameter(one, Parameter.POSITIONAL_OR_KEYWORD) for one in names])

    def call(*values: Any, **named: Any) -> Any:
        return act(*signature.bind(*values, **named).args)

    call.__name__ = call.__qualname__ = prototype.name
    call.__doc__, call.__module__ = about, __name__
    call.__signature__ = signature  # type: ignore[attr-defined]
    return served(api)(call)


def _on_core(act: Callable[..., Any]) -> Callable[..., Any]:
    def call(*values: Any) -> Any:
        kernels.only_core(values[-1])
        return act(*values[:-1])

    return call


def _made() -> dict[str, Callable[..., Any]]:
    written = {name: act for module in (functions, mapping, cards, kernels) for name, act in vars(module).items()}
    found = {}
    for name, form in FORMS.items():
        act = unwrap(written[form.base])
        about = f"{(act.__doc__ or '').rstrip('.')}{': on core 0' if form.of_core else ''}."
        found[name] = of_table(BMLIB, form.prototype, _on_core(act) if form.of_core else act, about)
    return found


globals().update(_made())
