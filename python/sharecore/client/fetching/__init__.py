"""Records from brokers to the application, and acknowledgements back."""
