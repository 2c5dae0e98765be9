"""A corpus of networks that makes itself: `python -m corpus` draws networks, compiles them and asks questions."""
