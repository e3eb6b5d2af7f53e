"""Logs and topics of the upstream cluster, as a node reads and writes them."""
