"""The loop that reads, plans, applies and reports."""
