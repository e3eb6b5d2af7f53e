//! Operations of a request that end one by one, and their outcomes.

use crate::planted::{Bug, is_planted};

/// Operations with their names and outcomes, in the order in which they began.
///
/// One operation may be lasting: a waiting fetch. While it lasts, writes of the other operations may linger in their log, as
/// the response waits for it anyway.
///
/// `N`: a name; `O`: an outcome; `L`: a log that lingers.
#[derive(Debug)]
pub struct Outcomes<N, O, L> {
    all: Vec<(N, Option<O>)>,
    left: usize,
    /// The position of the lasting operation, while it is pending.
    lasting: Option<usize>,
    lingering: Option<L>,
}

impl<N, O, L> Default for Outcomes<N, O, L> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            left: 0,
            lasting: None,
            lingering: None,
        }
    }
}

/// What follows from the end of an operation.
#[derive(Debug, PartialEq, Eq)]
pub struct OperationEnd<O, L> {
    /// The outcome before.
    pub before: Option<O>,
    /// Whether it was the last pending one.
    pub is_last: bool,
    /// Whether a fetch that waits for the other operations goes on: none of them is pending, or it has ended itself.
    pub fetch_goes_on: bool,
    /// A lingering log to hurry: the response waits for it now.
    pub hurry: Option<L>,
    /// A lingering log that has nothing left to do.
    pub released: Option<L>,
}

impl<N, O, L> Outcomes<N, O, L> {
    /// Begin an operation; return its position.
    pub fn begin(&mut self, name: N) -> usize {
        self.left += 1;
        self.put(name, None);
        self.all.len() - 1
    }

    /// Begin an operation that outlasts the others.
    pub fn begin_lasting(&mut self, name: N) -> usize {
        debug_assert!(self.lasting.is_none(), "one operation outlasts the others");
        let place = self.begin(name);
        self.lasting = Some(place);
        place
    }

    /// Add the outcome of an operation that needs no waiting.
    pub fn put(&mut self, name: N, outcome: Option<O>) {
        self.all.push((name, outcome));
    }

    /// Whether the operations that end now are outlasted by another.
    pub fn is_outlasted(&self) -> bool {
        self.lasting.is_some()
    }

    /// Hurry a log when the lasting operation ends before the others.
    pub fn linger(&mut self, log: L) {
        self.lingering = Some(log);
    }

    /// End the operation at a position.
    pub fn end(&mut self, place: usize, outcome: Option<O>) -> OperationEnd<O, L> {
        debug_assert!(self.left > 0, "an operation ends once");
        let before = std::mem::replace(&mut self.all[place].1, outcome);
        self.left = self.left.saturating_sub(1);
        self.lasting = self.lasting.filter(|lasting| *lasting != place);
        let is_last = self.left == 0 || is_planted(Bug::FirstEndAnswers);
        let outlasted = self.lasting.is_some();
        let lingering = self.lingering.take_if(|_| is_last || !outlasted);
        let (released, hurry) = if is_last {
            (lingering, None)
        } else {
            (None, lingering)
        };
        OperationEnd {
            before,
            is_last,
            fetch_goes_on: !outlasted || self.left == 1,
            hurry,
            released,
        }
    }

    /// Whether an operation is pending.
    pub fn is_pending(&self) -> bool {
        self.left > 0
    }

    /// Return names with outcomes; `None` if an operation is pending or had nothing to say.
    pub fn iter(&self) -> impl Iterator<Item = &(N, Option<O>)> {
        self.all.iter()
    }

    /// Return the lingering log, if any.
    pub fn lingering(&self) -> Option<&L> {
        self.lingering.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    type Plain = Outcomes<u8, &'static str, &'static str>;

    fn end(is_last: bool, hurry: Option<&'static str>) -> OperationEnd<&'static str, &'static str> {
        OperationEnd {
            before: None,
            is_last,
            fetch_goes_on: true,
            hurry,
            released: None,
        }
    }

    #[test]
    fn the_last_end_completes_the_request() {
        let mut outcomes = Plain::default();
        let (first, second) = (outcomes.begin(1), outcomes.begin(2));
        outcomes.put(3, Some("refused"));
        assert!(outcomes.is_pending());
        assert_eq!(outcomes.end(second, Some("failed")), end(false, None));
        assert_eq!(outcomes.end(first, None), end(true, None));
        assert!(!outcomes.is_pending());
        let all: Vec<_> = outcomes.iter().copied().collect();
        assert_eq!(all, [(1, None), (2, Some("failed")), (3, Some("refused"))]);
    }

    #[test]
    fn a_write_lingers_as_long_as_the_fetch_waits() {
        let mut outcomes = Plain::default();
        let (write, other) = (outcomes.begin(1), outcomes.begin(2));
        let fetch = outcomes.begin_lasting(3);
        assert!(outcomes.is_outlasted());
        outcomes.linger("log");
        let ended = outcomes.end(other, None);
        assert!(!ended.is_last && !ended.fetch_goes_on && ended.hurry.is_none());
        assert_eq!(outcomes.end(fetch, None), end(false, Some("log")));
        assert!(!outcomes.is_outlasted());
        assert_eq!(outcomes.end(write, None), end(true, None));
    }

    #[test]
    fn a_fetch_goes_on_once_it_is_alone() {
        let mut outcomes = Plain::default();
        let writes = [outcomes.begin(1), outcomes.begin(2)];
        let fetch = outcomes.begin_lasting(3);
        assert!(!outcomes.end(writes[0], None).fetch_goes_on);
        assert!(outcomes.end(writes[1], None).fetch_goes_on);
        assert!(outcomes.end(fetch, None).fetch_goes_on);
    }

    #[test]
    fn a_log_without_pending_writes_is_not_hurried() {
        let mut outcomes = Plain::default();
        let (fetch, write) = (outcomes.begin_lasting(1), outcomes.begin(2));
        outcomes.linger("log");
        assert_eq!(outcomes.end(write, None), end(false, None));
        let last = outcomes.end(fetch, None);
        assert_eq!(
            (last.is_last, last.hurry, last.released),
            (true, None, Some("log"))
        );
        assert_eq!(outcomes.lingering(), None);
    }

    proptest! {
        /// Operations end in any order: one end is the last, and a lingering log is passed on once.
        #[test]
        fn one_end_is_the_last(
            order in Just((0..8_usize).collect::<Vec<_>>()).prop_shuffle(),
            lasting in proptest::option::of(0..8_usize),
            outcomes_of in vec(any::<bool>(), 8),
        ) {
            let mut outcomes: Outcomes<usize, u8, &str> = Outcomes::default();
            for name in 0..8 {
                let place = if lasting == Some(name) {
                    outcomes.begin_lasting(name)
                } else {
                    outcomes.begin(name)
                };
                prop_assert_eq!(place, name);
            }
            outcomes.linger("log");
            let (mut passed_on, mut last) = (0, 0);
            for (at, place) in order.iter().enumerate() {
                prop_assert!(outcomes.is_pending());
                let ended = outcomes.end(*place, outcomes_of[*place].then_some(1));
                prop_assert_eq!(ended.is_last, at == 7);
                let fetch_waits = lasting.is_some_and(|lasting| !order[..=at].contains(&lasting));
                prop_assert!(!fetch_waits || ended.hurry.is_none());
                passed_on += usize::from(ended.hurry.is_some()) + usize::from(ended.released.is_some());
                last += usize::from(ended.is_last);
            }
            prop_assert_eq!((passed_on, last), (1, 1));
            for (name, outcome) in outcomes.iter() {
                prop_assert_eq!(outcome.is_some(), outcomes_of[*name]);
            }
        }
    }
}
