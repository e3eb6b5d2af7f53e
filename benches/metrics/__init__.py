"""What metrics cost: a scrape of many share partitions, and a request."""
