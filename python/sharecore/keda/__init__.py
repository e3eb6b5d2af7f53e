"""KEDA external scaler: scale workers in Kubernetes by the lag of a share group."""
