"""Whether a release can be made of this tree: ``make release-check``."""
