"""Tokens, and what every other part of the grammar reads: names, comments, character sets."""
