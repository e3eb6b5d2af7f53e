"""Nodes of a tier in front of a simulated cluster."""
