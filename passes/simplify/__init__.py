"""Target-independent rewrites: `canonicalize`, what it runs in turn, and what they share (phase "simplify")."""
