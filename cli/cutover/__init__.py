"""``shardmerge cutover``: hands a target over to the applications, and takes it back."""
