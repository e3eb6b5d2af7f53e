"""Metrics of clients (KIP-714): the same raw requests to Apache Kafka and to ours."""
