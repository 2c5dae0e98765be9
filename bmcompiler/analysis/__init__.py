"""What is said of a compiled program: its time, its parameters, its estimate."""
