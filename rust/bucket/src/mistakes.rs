//! Mistakes that tests plant to prove that they would be found. None can be planted without the feature `mistakes`.

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mistake {
    /// Claims are swept like other objects.
    ClaimsSwept,
    /// A place is acknowledged before all places below it are known to be ours.
    AnsweredOutOfOrder,
    /// A name that exists is assumed to be ours.
    ExistsIsOurs,
    /// A place with an unknown outcome is skipped for the next one.
    UnknownSkipped,
    /// A retry has other bytes.
    OtherBytes,
    /// A claim resumes at the place right after it.
    ResumeAtOnce,
    /// More places than the window are in progress.
    WindowIgnored,
    /// A claim is not checked for checkpoints beyond it.
    ClaimUnconfirmed,
    /// A segment is deleted before the checkpoint that names it is written.
    SegmentSwept,
    /// A frame that adds a segment is shipped before the segment is uploaded.
    FrameBeforeUpload,
    /// The end of the local journal is assumed to be in the bucket.
    TailTrusted,
    /// A checkpoint contains state that was not shipped.
    CheckpointUnshipped,
    /// The lease is counted from the answer to an object, not from its sending.
    LeaseFromAnswer,
    /// The silence of a leader is counted over looks that failed.
    SilenceOverFailures,
    /// A segment leaves the local disk before it is in the bucket.
    EvictedUnshipped,
}

/// Whether a mistake is planted: always false.
#[cfg(not(feature = "mistakes"))]
pub const fn planted(_: Mistake) -> bool {
    false
}

/// Whether a mistake is planted in this thread.
#[cfg(feature = "mistakes")]
pub fn planted(mistake: Mistake) -> bool {
    PLANTED.get() == Some(mistake)
}

#[cfg(feature = "mistakes")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Mistake>> = const { std::cell::Cell::new(None) };
}

/// Plant a mistake in this thread, or none.
#[cfg(feature = "mistakes")]
pub fn plant(mistake: Option<Mistake>) {
    PLANTED.set(mistake);
}
