"""How feature maps and weights lie in memory."""
