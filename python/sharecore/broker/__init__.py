"""The broker: what wires the rooms together, and one thin handler for each API."""
