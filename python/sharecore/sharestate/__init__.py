"""Durable share-partition state, and the share coordinator (KIP-932)."""
