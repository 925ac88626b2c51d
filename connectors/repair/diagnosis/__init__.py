"""What stopped a connector, and how it gets past it. Pure."""
