"""How the sink's processes are started, their settings, and what executors elsewhere are sent."""
