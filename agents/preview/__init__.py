"""Shows what the agents would decide about a rollout that nobody has executed yet. Pure.

It calls the agents' own functions. So a plan shows what will happen when the statements come in
this order.
"""
