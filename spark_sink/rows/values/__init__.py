"""Converts values from Debezium's form to the text that a target takes. Pure."""
