"""The first load: how a table is cut into chunks, which are read next, what rows wait for. Pure."""
