"""From many changes to the last one of each key, ready to be written. Pure."""
