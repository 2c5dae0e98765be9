"""What analyses of all chips of the BM168x family share: stages as records, layers, notes of what commands touch."""
