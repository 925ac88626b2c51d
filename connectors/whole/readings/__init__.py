"""Which tables have to be read as a whole, and by which connector. Pure."""
