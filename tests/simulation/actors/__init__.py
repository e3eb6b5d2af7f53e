"""Those who use the broker."""
