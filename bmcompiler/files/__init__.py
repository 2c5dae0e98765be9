"""Files: reading without copies, writing all at once, and the text forms of modules."""
