"""What the status pages show, folded from the topics, and its HTML. Pure."""
