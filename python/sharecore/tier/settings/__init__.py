"""The tier's settings and topics, stored in the cluster."""
