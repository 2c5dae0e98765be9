"""The names of plugins that are used where nothing is said: the one place where the core knows any."""

TARGET = "bm1880"
"""The target of `bmcompiler.compile` and of the examples in help texts."""
