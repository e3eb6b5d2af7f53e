"""A tier as its operators see, control and repair it."""
