"""What source files say, in the types that all later passes know (phase "import")."""
