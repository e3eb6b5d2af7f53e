"""Connections to the brokers of a cluster, and what the client knows of that cluster."""
