"""Coordinator logs: records appended to a topic of the broker and replayed at startup."""
