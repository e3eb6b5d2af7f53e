"""Figures for those who watch: Prometheus metrics, and the listener that serves them."""
