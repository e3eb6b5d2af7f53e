"""Connections to the brokers of a cluster, and its metadata."""
