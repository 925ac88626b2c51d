"""Makes the pages: values of ``agents.status`` in, HTML out. Has templates and assets. Pure."""
