"""The loop that reads, plans, applies and tells."""
