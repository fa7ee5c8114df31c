"""Studies on a server, with the methods of a `Study`."""
