"""From many changes to the last change of each key, ready to be written. Pure."""
