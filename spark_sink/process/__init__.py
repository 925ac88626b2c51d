"""How the sink's processes are started, and their settings."""
