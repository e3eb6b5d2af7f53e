"""Those who use the cluster, and the nodes in front of it."""
