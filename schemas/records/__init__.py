"""The records of our own topics as frozen values, and their bytes. Pure."""
