"""The broker: wires the packages together, with one thin handler per API."""
