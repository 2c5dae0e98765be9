"""What commands say and take where no plugin has been asked: the one place where the core knows a chip's name."""

TARGET = "bm1880"
"""The target of the examples in help texts; of `bmcompiler.compile`, too, where none is given, until version 0.4."""
PRECISIONS = ("f32", "f16", "bf16", "int8")
"""What commands take as `--quantize`; each chip has some."""
LLM_TARGET = "bm1684x"
"""The chip that language models are compiled for."""
