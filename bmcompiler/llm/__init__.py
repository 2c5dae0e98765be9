"""Language models: bundles of nets that share weights and caches, and the tokens they give.

bundle = Bundle.load("model.bmodel")
generator = Generator(bundle)
for token in generator.generate([1, 17, 300, 42], count=8):
    print(token)
"""

from bmcompiler.llm.bundle import Bundle
from bmcompiler.llm.generate import Generator

__all__ = ["Bundle", "Generator"]
