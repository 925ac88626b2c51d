"""From the bytes of a record to an operation, a row image and a binlog position. Pure."""
