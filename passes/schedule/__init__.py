"""Which layers are computed together (phase "schedule")."""
