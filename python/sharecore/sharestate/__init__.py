"""Durable state of share partitions, and the share coordinator that keeps it (KIP-932)."""
