"""Starts, watches and stops the servers of the local line."""
