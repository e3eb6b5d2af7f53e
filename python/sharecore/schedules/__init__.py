"""The scheduler: writes each scheduled record to its topic exactly once when it is due."""
