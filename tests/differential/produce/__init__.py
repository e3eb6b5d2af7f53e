"""Produce requests whose batches lie about themselves, sent to Apache Kafka and to sharecore."""
