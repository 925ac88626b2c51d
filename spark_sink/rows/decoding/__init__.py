"""From the bytes of a record to an operation, an image and a place. Pure."""
