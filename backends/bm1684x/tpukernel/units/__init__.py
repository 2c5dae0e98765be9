"""Functions that are one command of a unit each: tables from their arguments to the command's fields."""
