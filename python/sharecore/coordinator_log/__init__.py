"""The logs of coordinators: what they append to a topic of the broker's, and read back when it starts."""
