"""A standalone broker's backend: its data directory and its bucket."""
