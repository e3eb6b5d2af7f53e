"""Coordinators: who is in which group, who consumes what, and the records that keep it."""
