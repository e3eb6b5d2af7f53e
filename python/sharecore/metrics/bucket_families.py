"""Metrics of the copy in a bucket (docs/bucket.md)."""

from __future__ import annotations

from sharecore.metrics.family import Family, counter, gauge

BUCKET_STATE = gauge(
    "sharecore_bucket_state",
    "1 for what the copy or home is doing: attaching (it reads the bucket), leading (it writes), standby "
    "(another broker leads the home), fenced (another broker has the prefix), refused (the bucket holds "
    "something else).",
    "state",
)
BUCKET_BEHIND_TIME = gauge(
    "sharecore_bucket_behind_seconds",
    "How long the oldest write that is not known to be in the bucket has waited; 0 without one.",
)
BUCKET_BEHIND = gauge("sharecore_bucket_behind_bytes", "Bytes that are not known to be in the bucket.")
BUCKET_EPOCH = gauge(
    "sharecore_bucket_epoch",
    "Epoch in which this broker writes the bucket, 0 before it does; of a standby: the leader's.",
)
BUCKET_PLACE = gauge("sharecore_bucket_place", "Place of the next object of the journal in the bucket.")
BUCKET_HOME = gauge("sharecore_bucket_home", "1 if answers wait for the bucket, 0 for a copy.")
BUCKET_STANDBYS = gauge(
    "sharecore_bucket_standbys",
    "Of the leader of a home: other brokers that have described themselves in the bucket within 30 minutes.",
)
BUCKET_SILENCE = gauge(
    "sharecore_bucket_leader_silence_seconds",
    "Of a standby: how long the leader of the home has written nothing. It takes over after 6.5 s.",
)
BUCKET_SEGMENTS_WAITING = gauge(
    "sharecore_bucket_segments_waiting", "Sealed segments that are not in the bucket yet."
)
BUCKET_SURPLUS = gauge(
    "sharecore_bucket_surplus_bytes",
    "Bytes of files that are kept only until the bucket has them (`sharecore.bucket.surplus.bytes` bounds "
    "them).",
)
BUCKET_OBJECTS = counter("sharecore_bucket_objects", "Objects of the journal that were copied.")
BUCKET_COPIED = counter("sharecore_bucket_copied_bytes", "Bytes of these objects.")
BUCKET_SENT = counter(
    "sharecore_bucket_sent_bytes", "Bytes of all objects that were sent, segments and attempts included."
)
BUCKET_REQUESTS = counter(
    "sharecore_bucket_requests", "Requests to the bucket, each attempt counted.", "request"
)
BUCKET_FAILURES = counter(
    "sharecore_bucket_request_failures", "Requests to the bucket that got no definite answer."
)
BUCKET_LOCAL = gauge(
    "sharecore_bucket_cache_bytes",
    "Of a home with `sharecore.bucket.cache.bytes`: bytes of sealed segments on the local disk, and of "
    "pieces that were fetched.",
)
BUCKET_REMOTE = gauge(
    "sharecore_bucket_remote_bytes", "Of such a home: bytes of sealed segments that only the bucket has."
)
BUCKET_INTERNAL = gauge(
    "sharecore_bucket_cache_internal_bytes",
    "Of `sharecore_bucket_cache_bytes`: records of internal topics in evicted segments, which stay.",
)
BUCKET_EVICTED = counter("sharecore_bucket_evicted_segments", "Segments that left the local disk.")
BUCKET_EVICTION_FAILURES = counter(
    "sharecore_bucket_eviction_failures",
    "Failed attempts to evict a segment, or to rewrite an evicted one that is mostly deleted.",
)
BUCKET_PIECES = counter("sharecore_bucket_pieces", "Pieces of such segments that were read from the bucket.")
BUCKET_PIECE_BYTES = counter("sharecore_bucket_piece_bytes", "Bytes of these pieces.")
BUCKET_PIECE_TIME = counter(
    "sharecore_bucket_piece_seconds", "Time that reading pieces took, failures included."
)
BUCKET_PIECE_FAILURES = counter(
    "sharecore_bucket_piece_failures", "Reads of pieces that failed: readers got KAFKA_STORAGE_ERROR."
)

BUCKET = tuple(each for each in list(globals().values()) if isinstance(each, Family))
