"""Requests: from a frame to its handler, and from its answer to a frame."""
