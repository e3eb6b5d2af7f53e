"""Sending records to a cluster, with librdkafka."""
