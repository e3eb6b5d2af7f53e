"""Verify a cluster's guarantees: a workload, faults, a history of all calls, and a checker."""
