"""A source's binlog: events, GTIDs, and up to where a connector has read it. Pure."""
