"""The broker: wires the packages together, with thin handlers by domain."""
