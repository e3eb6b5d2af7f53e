"""Who a client is, what it may do, and how a connection is kept private."""
