"""A home in a bucket, and the machines that stand by for each other."""
