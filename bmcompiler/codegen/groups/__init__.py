"""Groups of layers: ops computed together slice by slice, so that what passes between them stays in local memory."""
