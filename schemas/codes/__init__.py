"""The stable codes of errors and of reasons: what each means, and what the operator can do."""
