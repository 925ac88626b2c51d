"""How we connect: one place for each kind of client, with its TLS, users and passwords."""
