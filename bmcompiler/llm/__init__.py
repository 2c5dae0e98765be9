"""Language models: folders as Hugging Face writes them, bundles of nets that share weights and caches, and tokens.

bundle = Bundle.load("model.bmodel")
generator = Generator(bundle)
for token in generator.generate([1, 17, 300, 42], count=8):
    print(token)

model = open_model("Qwen2.5-0.5B-Instruct")  # config.json and safetensors
states = FloatModel(model).states([1, 17, 300, 42])  # float32
module = build_net(model, "block_0", length=512)  # a net of a bundle
made = compile_bundle(model, BundleOptions(length=512))  # all of them, compiled
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bmcompiler.llm.bundle import Bundle
    from bmcompiler.llm.compile import BundleOptions, compile_bundle
    from bmcompiler.llm.float_model import FloatModel
    from bmcompiler.llm.generate import Generator
    from bmcompiler.llm.model import LanguageModel, open_model
    from bmcompiler.llm.nets import build_net
    from bmcompiler.llm.precision import Precision

__all__ = [
    "Bundle", "BundleOptions", "FloatModel", "Generator", "LanguageModel", "Precision", "build_net", "compile_bundle",
    "open_model",
]  # fmt: skip
_ROOMS = {
    "Bundle": "bundle",
    "BundleOptions": "compile",
    "FloatModel": "float_model",
    "Generator": "generate",
    "LanguageModel": "model",
    "Precision": "precision",
    "build_net": "nets",
    "compile_bundle": "compile",
    "open_model": "model",
}


def __getattr__(name: str) -> object:
    """What is heavy is imported when it is first asked for."""
    if name not in _ROOMS:
        raise AttributeError(f"module 'bmcompiler.llm' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"bmcompiler.llm.{_ROOMS[name]}"), name)
