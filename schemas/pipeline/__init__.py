"""The pipeline file, and what follows from it: routes, topics, row conditions. Pure."""
