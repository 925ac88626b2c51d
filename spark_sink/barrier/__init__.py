"""What may be done now: decisions, gates, debts, statements that are due. Pure."""
