"""Which schemas each kind of target can have, and the statements that it takes. Pure."""
