"""A whole pipeline on one machine (the line), for development, tests and first steps."""
