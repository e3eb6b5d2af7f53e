"""Share groups: their members, what these are assigned, and what has durable state (KIP-932)."""
