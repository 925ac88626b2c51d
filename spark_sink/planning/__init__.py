"""What the driver does next: offset ranges, and statements between them. Pure."""
