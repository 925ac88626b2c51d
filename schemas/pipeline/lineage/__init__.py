"""The table ``[lineage]`` of the pipeline file."""
