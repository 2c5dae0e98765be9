"""What commands say and take where no plugin has been asked: the one place where the core knows a chip's name."""

TARGET = "bm1880"
"""The target of `bmcompiler.compile` and of the examples in help texts."""
PRECISIONS = ("f32", "f16", "bf16", "int8")
"""What commands take as `--quantize`; each chip has some."""
