"""Runs a pipeline on this machine: its parts together or one by one, connectors, first files."""
