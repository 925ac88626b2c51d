"""What the driver does next: which offset ranges to apply, which statements to execute. Pure."""
