"""Folds what the driver knows into metrics. Pure."""
