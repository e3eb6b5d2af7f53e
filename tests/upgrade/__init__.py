"""Data directories of other releases: what they hold, and whether this one serves it."""
