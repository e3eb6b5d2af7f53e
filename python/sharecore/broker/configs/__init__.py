"""Configurations of topics and groups, applied."""
