//! Bugs that tests plant, to show that they would be found.

sharecore_planted::bugs! {
    /// A bug in how Produce requests are processed.
    enum Bug {
        /// A batch that was not written is answered like a written one.
        FailedIsWritten = "failed is written",
    }
}
