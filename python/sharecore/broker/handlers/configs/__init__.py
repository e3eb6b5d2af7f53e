"""Configurations: described and changed."""
