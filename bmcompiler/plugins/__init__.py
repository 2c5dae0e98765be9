"""How installed packages add frontends, targets, ops, layers and kernels, and how they are found."""
