"""Coordinators of groups, transactions and share state, wired to the broker's topics."""
