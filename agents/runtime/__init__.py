"""What carries the pure agents: Faust's delivery, tables, recovery and workers."""
