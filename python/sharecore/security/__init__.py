"""Authentication, authorization and encryption."""
