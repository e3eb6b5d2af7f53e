"""Brokers of job frameworks over a share group; see docs/adapters.md."""
