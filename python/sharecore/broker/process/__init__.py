"""The broker as a process."""
