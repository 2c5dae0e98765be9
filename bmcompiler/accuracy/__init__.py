"""Where a quantized network loses accuracy: layer by layer beside the float network, the culprits, and why."""
