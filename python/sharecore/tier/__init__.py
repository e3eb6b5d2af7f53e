"""A node in front of an existing Kafka cluster: records and share state are there, share groups are here."""
