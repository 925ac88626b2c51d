"""Where a rollout and the present tables come from: rollout files, migration folders, topics."""
