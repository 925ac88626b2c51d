"""Fetches what the local line runs, and checks what came."""
