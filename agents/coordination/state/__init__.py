"""What the coordinator knows of one target, and how it is stored. Pure."""
