"""Language models: folders as Hugging Face writes them, bundles of nets that share weights and caches, and tokens.

bundle = Bundle.load("model.bmodel")
generator = Generator(bundle)
for token in generator.generate([1, 17, 300, 42], count=8):
    print(token)

model = open_model("Qwen2.5-0.5B-Instruct")  # config.json and safetensors
states = FloatModel(model).states([1, 17, 300, 42])  # float32
module = build_net(model, "block_0", length=512)  # a net of a bundle
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bmcompiler.llm.bundle import Bundle
    from bmcompiler.llm.float_model import FloatModel
    from bmcompiler.llm.generate import Generator
    from bmcompiler.llm.model import LanguageModel, open_model
    from bmcompiler.llm.nets import build_net

__all__ = ["Bundle", "FloatModel", "Generator", "LanguageModel", "build_net", "open_model"]
_ROOMS = {
    "Bundle": "bundle",
    "FloatModel": "float_model",
    "Generator": "generate",
    "LanguageModel": "model",
    "build_net": "nets",
    "open_model": "model",
}


def __getattr__(name: str) -> object:
    """What is heavy is imported when it is first asked for."""
    if name not in _ROOMS:
        raise AttributeError(f"module 'bmcompiler.llm' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"bmcompiler.llm.{_ROOMS[name]}"), name)
