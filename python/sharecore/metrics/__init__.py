"""Prometheus metrics, and the listener that serves them."""
