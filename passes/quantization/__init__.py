"""Float to integers: what the schemes share is here, each scheme's own in a room of its own (`shift`, `scale`)."""
