"""MySQL, MariaDB and TiDB as a target: rows, offsets and journal on one server."""
