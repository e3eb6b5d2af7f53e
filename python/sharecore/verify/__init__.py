"""Verify that a cluster keeps its guarantees: a workload, faults, a history of all calls, and a checker."""
