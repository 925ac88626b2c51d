"""The target's table for a join, and the DDL that brings the target there. Pure."""
