"""Records on their way to a cluster, with librdkafka."""
