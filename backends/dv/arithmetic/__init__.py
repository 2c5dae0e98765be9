"""What a run computes, for simulator and `evaluate` alike."""
