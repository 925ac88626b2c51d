"""From a schema change and a target's state to exactly one decision. Pure."""
