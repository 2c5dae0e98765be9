"""IR to IR, independent of the target: one file per pass, in a room per phase of the pipelines; shared parts here."""
