"""Tokens, and the parts that all of the grammar uses: names, comments, character sets."""
