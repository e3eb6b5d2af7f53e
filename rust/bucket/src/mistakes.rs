//! Mistakes that tests plant, to prove that they would find them. Without the feature `mistakes` none can be planted.

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mistake {
    /// Claims are swept as other objects are.
    ClaimsSwept,
    /// A place is answered although one below is not known to be its own.
    AnsweredOutOfOrder,
    /// A name that is taken is taken by us.
    ExistsIsOurs,
    /// A place whose outcome is unknown is given up, and the next one used.
    UnknownSkipped,
    /// An object that is tried again has other bytes.
    OtherBytes,
    /// A claim resumes right behind itself.
    ResumeAtOnce,
    /// More places than the window are under way.
    WindowIgnored,
    /// Who claims does not ask whether a checkpoint lies beyond its claim.
    ClaimUnconfirmed,
    /// A segment is deleted before the checkpoint that names it is written.
    SegmentSwept,
    /// A frame that puts a segment in place is shipped before the segment is uploaded.
    FrameBeforeUpload,
    /// The end of the local journal is taken for what the bucket has.
    TailTrusted,
    /// A checkpoint holds what was not shipped.
    CheckpointUnshipped,
}

/// Whether a mistake is planted; never, outside of tests.
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
