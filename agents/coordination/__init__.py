"""Makes exactly one decision from a schema change and a target's state. Pure."""
