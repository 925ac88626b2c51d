"""Hands what the driver knows to the thread that sends lineage events."""
