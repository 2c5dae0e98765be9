"""Faults on purpose: which of them do the tests find? `tools/mutate.py` is the command, `make mutation` calls it."""
