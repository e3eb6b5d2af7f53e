"""Metrics and health of the broker."""
