"""The nodes of a tier, and the slots that each of them gets."""
