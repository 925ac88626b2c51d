"""The worker's web server, and what feeds its pages."""
