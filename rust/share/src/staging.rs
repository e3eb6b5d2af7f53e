//! Records on their way into a partition of a coordinator's topic: which batch goes out when, and what becomes of those that
//! were not written. The order stays: what follows a batch that was lost waits behind it.
//!
//! `B` is a batch, whose records others hold; here it has a number.

use std::collections::{BTreeMap, VecDeque};

use crate::planted::{Bug, is_planted};

/// A batch among those of a staging; later ones have higher numbers.
pub type Number = u64;

#[derive(Debug)]
struct Batch<B> {
    it: B,
    /// Whether it is part of no transaction.
    is_plain: bool,
    attempts: u32,
    /// Appends of it whose end is not known.
    open: usize,
    /// When whoever waits is answered at the latest.
    due_ms: i64,
    is_answered: bool,
    /// Whether it is staged, sent or lost.
    is_listed: bool,
}

/// What is to be tried again, or given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mend {
    /// How often the first batch was sent that was lost; 0 where none is left.
    pub attempts: u32,
    /// Whether a batch was written behind one that was lost: that one would come behind what followed it.
    pub is_overtaken: bool,
}

/// The batches of one partition.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is about something else"
)]
pub struct Staging<B> {
    timeout_ms: i64,
    batches: BTreeMap<Number, Batch<B>>,
    next: Number,
    staged: VecDeque<Number>,
    sent: Vec<Number>,
    lost: Vec<Number>,
    unanswered: VecDeque<Number>,
    /// When the timer rings that answers those whose time is over.
    timer_due_ms: Option<i64>,
    is_resending: bool,
    is_overtaken: bool,
    has_failed: bool,
    is_stale: bool,
    moves: u64,
}

impl<B> Default for Staging<B> {
    fn default() -> Self {
        Self::new(0)
    }
}

impl<B> Staging<B> {
    /// One whose memory is yet to be read from the log; writes are answered after so long at the latest.
    pub fn new(timeout_ms: i64) -> Self {
        Self {
            timeout_ms,
            batches: BTreeMap::new(),
            next: 0,
            staged: VecDeque::new(),
            sent: Vec::new(),
            lost: Vec::new(),
            unanswered: VecDeque::new(),
            timer_due_ms: None,
            is_resending: false,
            is_overtaken: false,
            has_failed: false,
            is_stale: true,
            moves: 0,
        }
    }

    /// Whether memory is ahead of the log.
    pub fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Memory is ahead of the log, or was read anew.
    pub fn set_stale(&mut self, is_stale: bool) {
        self.is_stale = is_stale;
        self.note_move();
    }

    /// Something in memory is gone, or lies elsewhere.
    pub fn note_move(&mut self) {
        self.moves += 1;
    }

    /// How often what is in memory was read anew, or moved.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Whether memory is not ahead of the log, and nothing in it has moved since.
    pub fn is_at(&self, moves: u64) -> bool {
        debug_assert!(moves <= self.moves, "of what is yet to come");
        !self.is_stale && self.moves == moves
    }

    /// Whether what is staged next is the first of its turn, at whose end it is to be flushed.
    pub fn begins_turn(&self) -> bool {
        self.staged.is_empty()
    }

    /// The last batch that is staged: records of the same producer join it.
    pub fn last(&self) -> Option<&B> {
        let last = self.staged.back()?;
        self.batches.get(last).map(|batch| &batch.it)
    }

    /// Stages a batch; `is_plain` where it is part of no transaction. Returns its number.
    pub fn stage(&mut self, is_plain: bool, it: B) -> Number {
        let number = self.next;
        self.next += 1;
        self.staged.push_back(number);
        self.assert_in_order();
        let batch = Batch {
            it,
            is_plain,
            attempts: 0,
            open: 0,
            due_ms: 0,
            is_answered: false,
            is_listed: true,
        };
        self.batches.insert(number, batch);
        number
    }

    /// How many batches go out now: none while one is lost.
    pub fn to_flush(&self) -> usize {
        if self.lost.is_empty() {
            self.staged.len()
        } else {
            0
        }
    }

    /// Takes the batch that goes out next; none where one is lost by now.
    pub fn take(&mut self) -> Option<(Number, &B)> {
        if !self.lost.is_empty() {
            return None;
        }
        let number = self.staged.pop_front()?;
        let batch = self.batches.get_mut(&number)?;
        batch.is_listed = false;
        Some((number, &batch.it))
    }

    /// Whoever waits for a batch is answered in time from now on. Whether a timer is to be set: most are answered long
    /// before, so that one serves all.
    pub fn limit(&mut self, number: Number, now_ms: i64) -> bool {
        debug_assert!(
            self.unanswered.back().is_none_or(|last| *last < number),
            "a batch is limited once, in its order"
        );
        if let Some(batch) = self.batches.get_mut(&number) {
            batch.due_ms = now_ms.saturating_add(self.timeout_ms);
            self.unanswered.push_back(number);
        }
        self.timer_due_ms.is_none()
    }

    /// After how many milliseconds the timer is to ring; none where nobody waits.
    pub fn arm(&mut self, now_ms: i64) -> Option<i64> {
        let first = self.unanswered.front();
        let due_ms = first.and_then(|first| self.batches.get(first));
        self.timer_due_ms = due_ms.map(|batch| batch.due_ms);
        self.timer_due_ms
            .map(|due_ms| due_ms.saturating_sub(now_ms))
    }

    /// A batch goes to the log.
    pub fn send(&mut self, number: Number) {
        debug_assert!(!self.sent.contains(&number), "it is under way already");
        if let Some(batch) = self.batches.get_mut(&number) {
            debug_assert!(!batch.is_listed, "it waits elsewhere as well");
            batch.is_listed = true;
            batch.attempts += 1;
            self.sent.push(number);
        }
    }

    /// It takes so many appends.
    pub fn begin_appends(&mut self, number: Number, appends: usize) {
        debug_assert!(appends > 0, "a batch of nothing is not sent");
        if let Some(batch) = self.batches.get_mut(&number) {
            batch.open = appends;
        }
    }

    /// So many of them have ended; whether all have.
    pub fn end_appends(&mut self, number: Number, appends: usize) -> bool {
        self.batches.get_mut(&number).is_some_and(|batch| {
            debug_assert!(appends <= batch.open, "more end than have begun");
            batch.open = batch.open.saturating_sub(appends);
            batch.open == 0
        })
    }

    /// A batch that was sent is written, or lost; whoever waits for a written one can be notified.
    pub fn ended(&mut self, number: Number, is_lost: bool) {
        let is_lost = is_lost && !is_planted(Bug::LostIsWritten);
        debug_assert!(self.sent.contains(&number), "it was not sent");
        self.sent.retain(|each| *each != number);
        if is_lost {
            self.lost.push(number);
            self.has_failed = true;
        } else {
            // one before it was lost: written now, that one would come behind what followed it
            self.is_overtaken = !self.lost.is_empty();
            self.unlist(number);
        }
    }

    /// What to do about what was lost, once nothing is under way.
    pub fn mend(&mut self) -> Option<Mend> {
        if !self.has_failed || !self.sent.is_empty() || self.is_resending {
            return None;
        }
        self.has_failed = false;
        let first = self.lost.first().and_then(|first| self.batches.get(first));
        Some(Mend {
            attempts: first.map_or(0, |batch| batch.attempts),
            is_overtaken: self.is_overtaken,
        })
    }

    /// What was lost is sent once more, in its order; nothing is mended before [`end_again`](Self::end_again).
    pub fn begin_again(&mut self) -> Vec<Number> {
        debug_assert!(!self.is_resending, "it is under way already");
        self.is_resending = true;
        let lost = std::mem::take(&mut self.lost);
        for number in &lost {
            if let Some(batch) = self.batches.get_mut(number) {
                batch.is_listed = false;
            }
        }
        lost
    }

    /// The next of them; none where it waits behind one that was lost again.
    pub fn again(&mut self, number: Number) -> Option<&B> {
        let waits = !self.lost.is_empty();
        let batch = self.batches.get_mut(&number)?;
        if waits {
            batch.is_listed = true;
            self.lost.push(number);
            return None;
        }
        Some(&batch.it)
    }

    /// All of them are sent.
    pub fn end_again(&mut self) {
        debug_assert!(self.is_resending, "nothing is sent once more");
        self.is_resending = false;
    }

    /// Takes out what is lost, and what was staged on top of it: none of it is written any more, and memory is ahead.
    ///
    /// Each batch stays known until [`answer`](Self::answer), also one that was answered when its time was over: who follows
    /// its end has to be reported.
    pub fn abandon(&mut self) -> Vec<Number> {
        self.is_overtaken = false;
        self.set_stale(true);
        let mut gone = std::mem::take(&mut self.lost);
        gone.extend(self.staged.drain(..));
        self.take_out(&gone);
        gone
    }

    /// Takes out batches of transactions that are lost, or wait behind what is lost; see [`abandon`](Self::abandon).
    pub fn abandon_transactions(&mut self) -> Vec<Number> {
        let batches = &self.batches;
        let is_plain = |number: &Number| batches.get(number).is_none_or(|batch| batch.is_plain);
        let (kept, mut gone): (Vec<_>, Vec<_>) = self.lost.drain(..).partition(is_plain);
        self.lost = kept;
        let (kept, behind): (Vec<_>, Vec<_>) = self.staged.drain(..).partition(is_plain);
        self.staged = kept.into();
        gone.extend(behind);
        self.is_overtaken &= !self.lost.is_empty();
        self.take_out(&gone);
        gone
    }

    /// Whoever waits for a batch is notified when it ends or its time is over.
    pub fn answer(&mut self, number: Number) {
        if let Some(batch) = self.batches.get_mut(&number) {
            batch.is_answered = true;
            if !batch.is_listed {
                self.batches.remove(&number);
            }
        }
        while let Some(first) = self.unanswered.front()
            && self
                .batches
                .get(first)
                .is_none_or(|batch| batch.is_answered)
        {
            self.unanswered.pop_front();
        }
        self.assert_in_order();
    }

    /// The oldest batch whose end was not reported.
    pub fn oldest(&self) -> Option<&B> {
        let first = self.unanswered.front()?;
        self.batches.get(first).map(|batch| &batch.it)
    }

    /// The same, where its time is over.
    pub fn overdue(&self, now_ms: i64) -> Option<&B> {
        let first = self.unanswered.front()?;
        let batch = self.batches.get(first)?;
        (batch.due_ms <= now_ms).then_some(&batch.it)
    }

    /// A batch, until its end is reported.
    pub fn get(&self, number: Number) -> Option<&B> {
        self.batches.get(&number).map(|batch| &batch.it)
    }

    /// Batches that wait to be sent.
    pub fn staged(&self) -> impl Iterator<Item = &B> {
        self.staged.iter().filter_map(|number| self.get(*number))
    }

    /// Batches that are under way.
    pub fn sent(&self) -> impl Iterator<Item = &B> {
        self.sent.iter().filter_map(|number| self.get(*number))
    }

    /// Batches that were not written, and may be tried again.
    pub fn lost(&self) -> impl Iterator<Item = &B> {
        self.lost.iter().filter_map(|number| self.get(*number))
    }

    /// All batches that it knows.
    pub fn all(&self) -> impl Iterator<Item = &B> {
        self.batches.values().map(|batch| &batch.it)
    }

    fn take_out(&mut self, numbers: &[Number]) {
        for number in numbers {
            if let Some(batch) = self.batches.get_mut(number) {
                batch.is_listed = false;
            }
        }
    }

    /// It is in no list any more; kept until its end is reported.
    fn unlist(&mut self, number: Number) {
        if let Some(batch) = self.batches.get_mut(&number) {
            batch.is_listed = false;
            if batch.is_answered {
                self.batches.remove(&number);
            }
        }
    }

    fn assert_in_order(&self) {
        debug_assert!(
            self.staged.iter().is_sorted(),
            "what is staged goes out in its order"
        );
        debug_assert!(
            self.unanswered.iter().is_sorted(),
            "who has waited longest is notified first"
        );
        debug_assert!(
            self.sent.is_empty() || self.staged.front().is_none_or(|next| self.sent[0] < *next),
            "what comes later was sent before"
        );
    }
}

#[cfg(test)]
mod tests;
