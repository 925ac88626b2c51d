"""Replays what happened from the records: bundles, steps, verification, and their texts.

Pure, on the agents' own folds: equal records give equal bytes.
"""
