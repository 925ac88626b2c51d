"""What the pages show, folded from the topics, as values. Pure."""
