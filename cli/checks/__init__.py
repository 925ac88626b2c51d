"""What ``shardmerge check`` asks of servers and topics, and how it judges the answers."""
