"""Runs first loads: plans chunks, gives them out, stores states, proves ends (clock, threads)."""
