"""Turns the records of the topics into the values that pages show. Pure."""
