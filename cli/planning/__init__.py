"""``shardmerge plan``: what a rollout would do to the targets, before anybody executes it."""
