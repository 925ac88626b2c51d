"""Brings a source's connector past a place where Debezium cannot go on by itself."""
