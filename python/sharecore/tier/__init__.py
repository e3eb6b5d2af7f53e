"""A tier node: serves share groups whose records and state are stored in a Kafka cluster."""
