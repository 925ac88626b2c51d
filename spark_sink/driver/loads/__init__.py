"""First loads in the driver: what is stored, planned, given out and proved (clock, threads)."""
