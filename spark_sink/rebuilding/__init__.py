"""What is decided for a table that is made anew beside its target, and when. Pure."""
