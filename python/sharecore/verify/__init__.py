"""Proof that a cluster keeps its promises: a workload, faults, the history of every call, and a checker."""
