"""Share groups: members, assignments, and the share-partition state of their topics (KIP-932)."""
