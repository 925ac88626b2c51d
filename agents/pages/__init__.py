"""The pages as HTML: what ``agents.status`` tells in, text out; templates and assets. Pure."""
