"""The toy chip: a complete target for bmcompiler. docs/toy_chip.md builds it up file by file."""
