"""Whole statements, by kind."""
