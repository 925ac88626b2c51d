"""What is asked of a source's server itself: its binlog, its signal table."""
