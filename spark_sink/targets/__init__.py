"""Kinds of target: how to connect, write rows, and execute statements."""
