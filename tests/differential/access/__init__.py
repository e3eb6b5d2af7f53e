"""Who may do what: the same requests of the same principals to Apache Kafka and to ours."""
