"""C functions as tables: what a vendor's header declares, from which the checks of the Python functions come."""
