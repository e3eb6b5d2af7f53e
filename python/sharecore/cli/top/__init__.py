"""`sharecore top`: share groups on a terminal, as they change."""
