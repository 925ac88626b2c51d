"""How the sink's processes are started, and what they are told."""
