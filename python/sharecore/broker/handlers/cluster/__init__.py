"""The cluster, as clients see it."""
