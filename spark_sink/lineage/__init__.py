"""What the sink tells a lineage server: OpenLineage events of its targets and of executed DDL."""
