"""Tables as people have them: files, tables of other libraries, and the names and types of their columns."""
