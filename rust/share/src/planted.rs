//! Bugs that tests plant, to show that they would be found.

sharecore_planted::bugs! {
    /// A bug in how requests of share groups are processed.
    enum Bug {
        /// A request with the epoch of the one before is processed again.
        EpochRepeats = "epoch repeats",
        /// The last of several acknowledged batches of a partition is confirmed, but not processed.
        LastBatchDropped = "last batch dropped",
        /// A batch of a coordinator that was not written counts as written.
        LostIsWritten = "lost is written",
        /// A session that watches a leader is not notified of records.
        WatcherNeverWaits = "watcher never waits",
        /// A ShareFetch response has no acknowledge errors.
        AcknowledgeErrorHidden = "acknowledge error hidden",
        /// The delivery count of a partition's first range is sent for all of its ranges.
        FirstCountForAll = "first count for all",
        /// A session that ends keeps its acquired records.
        EndKeepsRecords = "end keeps records",
        /// A response leaves when the first of its operations has ended.
        FirstEndAnswers = "first end answers",
        /// A waiting fetch keeps the records that it acquires until its time is over.
        EnoughIgnored = "enough ignored",
    }
}
