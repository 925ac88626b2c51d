"""SQL and JSON that Spark and Iceberg read and write. Pure."""
