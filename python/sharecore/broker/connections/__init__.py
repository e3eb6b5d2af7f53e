"""Connections to the broker: encryption, authentication, and limits."""
