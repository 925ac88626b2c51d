"""The whole line on one machine, for development, tests and first steps."""
