"""Folds a rollout that nobody has executed yet: what the agents would decide, and in which order.

Pure, on the agents' own folds: what a plan shows is what happens when the statements come in this
order.
"""
