"""truvar from within other people's tools. Each is imported by its name, with the library it is for."""
