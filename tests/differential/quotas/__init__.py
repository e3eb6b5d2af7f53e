"""Quotas: ours and Apache Kafka's, request by request."""
