"""Commands as the driver takes them: structures, sizes, the unified buffer, what is refused."""
