"""Authorized operations, as answers carry them in bits: without access control, all of a resource."""

from __future__ import annotations

NOT_REQUESTED = -2147483648
TOPIC = 3576
"""Read, write, create, delete, alter, describe, describe configs, alter configs."""
CLUSTER = 8096
"""Create, alter, describe, cluster action, describe configs, alter configs, idempotent write."""
GROUP = 3400
"""Read, delete, describe, describe configs, alter configs."""
