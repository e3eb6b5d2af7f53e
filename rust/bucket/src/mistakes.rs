//! Mistakes of the protocol that the model of the tests plants, to prove that it would find them.

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
}

/// Whether a mistake is planted; never, outside of the model.
#[cfg(not(feature = "mistakes"))]
pub(crate) const fn planted(_: Mistake) -> bool {
    false
}

#[cfg(feature = "mistakes")]
pub(crate) fn planted(mistake: Mistake) -> bool {
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
