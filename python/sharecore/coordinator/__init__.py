"""Coordinators: group membership, assignments, offsets, transactions, and their records."""
