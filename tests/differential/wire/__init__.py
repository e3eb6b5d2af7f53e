"""Raw requests to Apache Kafka and to sharecore in lock step; their answers field for field."""
