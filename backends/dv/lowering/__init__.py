"""From ops to runs and from runs to commands: the code generator."""
