"""Ops in the forms that the target runs (phase "support")."""
