"""The partition with the state of a share partition."""

from __future__ import annotations

from uuid import UUID

from sharecore.sharestate import coordinator
from sharecore.sharestate.keys import SharePartitionKey


def test_long_group_ids_do_not_fill_the_cache_of_hashes() -> None:
    kafkas_partition, cached = coordinator.kafkas_partition, coordinator._hash_before
    before = cached.cache_info().currsize
    for number in range(20):
        assert 0 <= kafkas_partition(SharePartitionKey(f"{number}{'x' * 30_000}", UUID(int=1), 0), 50) < 50
    assert cached.cache_info().currsize == before
    kafkas_partition(SharePartitionKey("a-short-one", UUID(int=1), 0), 50)
    assert cached.cache_info().currsize == before + 1
