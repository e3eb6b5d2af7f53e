"""The standby of a home in a bucket."""
