"""SQL text of MySQL and MariaDB, read into changes, and what these make of a schema. Pure."""
