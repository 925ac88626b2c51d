"""Definitions and statements as text, one module per kind of target."""
