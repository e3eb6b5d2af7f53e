//! Checking the records of a request in turns, so that other requests get their turn in between.

use std::mem;

use sharecore_store::{Incoming, Refusal};

/// A batch whose records are checked piece by piece.
pub trait Check {
    /// Check until `work` is used up; return whether it is done.
    fn check(&mut self, work: &mut usize) -> Result<bool, Refusal>;
}

impl Check for Incoming {
    fn check(&mut self, work: &mut usize) -> Result<bool, Refusal> {
        Incoming::check(self, work)
    }
}

/// The batches of a request, in order; a refused one has nothing left to check.
#[derive(Debug)]
pub struct Checks<C> {
    left: std::vec::IntoIter<Result<C, Refusal>>,
    current: Option<Result<C, Refusal>>,
    done: Vec<Result<C, Refusal>>,
}

impl<C: Check> Checks<C> {
    /// Begin.
    pub fn new(batches: Vec<Result<C, Refusal>>) -> Self {
        let mut left = batches.into_iter();
        Self {
            current: left.next(),
            left,
            done: Vec::new(),
        }
    }

    /// Check for one turn; return whether all batches are done.
    pub fn turn(&mut self, mut work: usize) -> bool {
        while let Some(batch) = &mut self.current {
            let checked = match batch {
                Ok(batch) => batch.check(&mut work),
                Err(_) => Ok(true),
            };
            match checked {
                Ok(false) => return false,
                Ok(true) => self
                    .done
                    .extend(mem::replace(&mut self.current, self.left.next())),
                Err(refusal) => {
                    self.done.push(Err(refusal));
                    self.current = self.left.next();
                }
            }
        }
        true
    }

    /// Take the checked batches.
    pub fn take(&mut self) -> Vec<Result<C, Refusal>> {
        mem::take(&mut self.done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The work that is left; some batches turn out to be corrupt at their end.
    struct Fake {
        name: u8,
        left: usize,
        is_corrupt: bool,
    }

    impl Check for Fake {
        fn check(&mut self, work: &mut usize) -> Result<bool, Refusal> {
            let done = self.left.min(*work);
            self.left -= done;
            *work -= done;
            match self.left {
                0 if self.is_corrupt => Err(Refusal::CorruptBatch("torn".into())),
                left => Ok(left == 0),
            }
        }
    }

    fn fake(name: u8, left: usize, is_corrupt: bool) -> Fake {
        Fake {
            name,
            left,
            is_corrupt,
        }
    }

    #[test]
    fn batches_are_checked_in_order_turn_by_turn() {
        let batches = vec![
            Ok(fake(1, 5, false)),
            Err(Refusal::Busy),
            Ok(fake(2, 12, true)),
            Ok(fake(3, 1, false)),
        ];
        let mut checks = Checks::new(batches);
        assert!(!checks.turn(10), "5 of the first, 5 of the third");
        assert!(checks.turn(10));
        let done = checks.take();
        let names: Vec<_> = done
            .iter()
            .map(|each| each.as_ref().ok().map(|it| it.name))
            .collect();
        assert_eq!(names, [Some(1), None, None, Some(3)]);
        assert!(matches!(done[1], Err(Refusal::Busy)));
        assert!(matches!(done[2], Err(Refusal::CorruptBatch(_))));
        assert!(checks.take().is_empty());
    }

    #[test]
    fn nothing_is_done_at_once() {
        assert!(Checks::<Fake>::new(Vec::new()).turn(0));
    }
}
