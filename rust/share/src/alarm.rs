//! One timer for many deadlines.

use std::collections::BTreeMap;

/// A timer that fires at the first deadline or earlier; if it fires early, it is set again for the next deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alarm {
    due_ms: Option<i64>,
}

impl Alarm {
    /// Schedule the timer no later than a time. Return the delay in milliseconds if a new timer has to replace the current
    /// one.
    pub fn set(&mut self, due_ms: i64, now_ms: i64) -> Option<i64> {
        if self.due_ms.is_some_and(|before_ms| before_ms <= due_ms) {
            return None;
        }
        self.due_ms = Some(due_ms);
        debug_assert!(self.is_set(), "a timer is set");
        Some(due_ms.saturating_sub(now_ms))
    }

    /// Note that the timer fired or was canceled.
    pub fn off(&mut self) {
        self.due_ms = None;
    }

    /// Whether a timer runs.
    pub fn is_set(&self) -> bool {
        self.due_ms.is_some()
    }
}

/// A deadline and its sequence number: equal deadlines expire in insertion order.
pub type Due = (i64, u64);

/// Deadlines with one timer for all. Most entries end before their deadline; a later deadline does not reset the timer.
#[derive(Debug)]
pub struct Deadlines<T> {
    waiting: BTreeMap<Due, T>,
    count: u64,
    alarm: Alarm,
}

impl<T> Default for Deadlines<T> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            count: 0,
            alarm: Alarm::default(),
        }
    }
}

impl<T> Deadlines<T> {
    /// Add an entry with a deadline.
    pub fn add(&mut self, due_ms: i64, waiting: T) -> Due {
        self.count += 1;
        let due = (due_ms, self.count);
        let before = self.waiting.insert(due, waiting);
        debug_assert!(before.is_none(), "numbers are given once");
        due
    }

    /// Remove an entry before its deadline.
    pub fn remove(&mut self, due: Due) -> Option<T> {
        self.waiting.remove(&due)
    }

    /// Return the delay of a new timer, if one is needed; see [`Alarm::set`].
    pub fn arm(&mut self, now_ms: i64) -> Option<i64> {
        let (&(due_ms, _), _) = self.waiting.first_key_value()?;
        let delay_ms = self.alarm.set(due_ms, now_ms);
        debug_assert!(self.alarm.is_set(), "nothing would end at its time");
        delay_ms
    }

    /// Return the expired entries, in order, after the timer fired.
    pub fn over(&mut self, now_ms: i64) -> impl Iterator<Item = T> + use<T> {
        self.alarm.off();
        let later = self.waiting.split_off(&(now_ms.saturating_add(1), 0));
        let over = std::mem::replace(&mut self.waiting, later);
        debug_assert!(
            over.keys().all(|(due_ms, _)| *due_ms <= now_ms),
            "nothing ends before its time"
        );
        debug_assert!(
            self.waiting.keys().all(|(due_ms, _)| *due_ms > now_ms),
            "everything ends at its time"
        );
        over.into_values()
    }

    /// Return all entries.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.waiting.values()
    }

    /// Remove all entries.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.alarm.off();
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_timer_is_moved_for_what_is_due_before_it() {
        let mut alarm = Alarm::default();
        assert!(!alarm.is_set());
        assert_eq!(alarm.set(100, 40), Some(60));
        assert_eq!(alarm.set(100, 41), None);
        assert_eq!(alarm.set(200, 41), None);
        assert_eq!(alarm.set(99, 50), Some(49));
        alarm.off();
        assert_eq!(alarm.set(50, 60), Some(-10));
        assert!(alarm.is_set());
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Add(i64),
        Remove(usize),
        Pass(i64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_i64..100).prop_map(Step::Add),
            (0_usize..20).prop_map(Step::Remove),
            (1_i64..60).prop_map(Step::Pass),
        ]
    }

    proptest! {
        /// Compare with a plain list and a simulated clock.
        #[test]
        fn everything_ends_once_at_its_time(steps in vec(step(), 0..60)) {
            let mut deadlines = Deadlines::default();
            let mut model: Vec<(Due, usize)> = Vec::new();
            let (mut now_ms, mut timer_ms, mut next) = (0_i64, None, 0_usize);
            for step in steps {
                match step {
                    Step::Add(wait_ms) => {
                        let due = deadlines.add(now_ms + wait_ms, next);
                        model.push((due, next));
                        next += 1;
                        if let Some(delay_ms) = deadlines.arm(now_ms) {
                            timer_ms = Some(now_ms + delay_ms);
                        }
                    }
                    Step::Remove(at) if at < model.len() => {
                        let (due, waiting) = model.remove(at);
                        prop_assert_eq!(deadlines.remove(due), Some(waiting));
                        prop_assert_eq!(deadlines.remove(due), None);
                    }
                    Step::Remove(_) => {}
                    Step::Pass(ms) => {
                        let until_ms = now_ms + ms;
                        while let Some(at_ms) = timer_ms.filter(|at_ms| *at_ms <= until_ms) {
                            now_ms = now_ms.max(at_ms);
                            let over: Vec<_> = deadlines.over(now_ms).collect();
                            let mut due: Vec<_> =
                                model.extract_if(.., |(due, _)| due.0 <= now_ms).collect();
                            due.sort_unstable();
                            let due: Vec<_> = due.into_iter().map(|(_, waiting)| waiting).collect();
                            prop_assert_eq!(over, due);
                            timer_ms = deadlines.arm(now_ms).map(|delay_ms| now_ms + delay_ms);
                        }
                        now_ms = until_ms;
                        prop_assert!(model.iter().all(|(due, _)| due.0 > now_ms), "none is late");
                    }
                }
            }
            prop_assert_eq!(deadlines.iter().count(), model.len());
        }
    }
}
