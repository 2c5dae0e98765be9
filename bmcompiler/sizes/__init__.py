"""Networks for sizes that vary: `syntax` reads shapes with ranges as the shapes of several programs."""
