"""Who may give commands from the pages and from ``/api``, and which forms count. Pure."""
