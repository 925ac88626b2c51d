"""The two agents as pure functions: one source record and an agent's rows in, effects out."""
