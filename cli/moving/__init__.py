"""Moves a source's connector to another server, such as a replica that took over."""
