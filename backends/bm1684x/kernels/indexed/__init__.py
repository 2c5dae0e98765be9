"""Elements and rows that are picked or replaced at indices which are known at run time."""
