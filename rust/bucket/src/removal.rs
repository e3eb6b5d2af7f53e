//! Deletes a home or a copy from a bucket.

use crate::call::{Answer, Bucket, What, ask_until_definite, list_all};
use crate::checkpoint::{FOREIGN_HOME, read_home};
use crate::names::{FORMAT, KEPT, PROBE};

/// Objects deleted at a time.
const AT_A_TIME: usize = 64;
const ATTEMPTS: u32 = 3;

/// Delete all objects of a home or a copy, and return their number; other objects below the prefix stay. No broker may
/// use it. `format` goes last, so that an interrupted removal can be repeated. The error is a sentence.
pub fn remove(bucket: &mut dyn Bucket) -> Result<u64, String> {
    let get = What::Get {
        name: FORMAT.into(),
        range: None,
    };
    match answers(bucket, &[get])?.pop() {
        Some(Answer::Bytes(bytes)) if read_home(&bytes).is_some() => {}
        Some(Answer::Bytes(_)) => return Err(FOREIGN_HOME.into()),
        _ => return Err("not a copy: the object `format` is missing".into()),
    }
    let mut removed = 0;
    for prefix in [PROBE].into_iter().chain(KEPT) {
        let found = list_all(prefix, |list| match answers(bucket, &[list])?.pop() {
            Some(Answer::Names(page)) => Ok(page),
            _ => Err("a list was not answered with names".to_owned()),
        })?;
        let names: Vec<String> = found.into_iter().map(|(name, _)| name).collect();
        for some in names.chunks(AT_A_TIME) {
            delete(bucket, some)?;
            removed += some.len() as u64;
        }
    }
    delete(bucket, &[FORMAT.into()])?;
    Ok(removed + 1)
}

fn delete(bucket: &mut dyn Bucket, names: &[String]) -> Result<(), String> {
    let delete = |name: &String| What::Delete { name: name.clone() };
    let deletes: Vec<What> = names.iter().map(delete).collect();
    answers(bucket, &deletes).map(drop)
}

fn answers(bucket: &mut dyn Bucket, whats: &[What]) -> Result<Vec<Answer>, String> {
    ask_until_definite(bucket, whats, ATTEMPTS).map_err(|(_, why)| why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryBucket, home, names};

    /// Answers so many requests.
    struct Dying(MemoryBucket, u32);

    impl Bucket for Dying {
        fn ask(&mut self, what: What) -> Answer {
            if self.1 == 0 {
                return Answer::Unknown("503".into());
            }
            self.1 -= 1;
            self.0.ask(what)
        }
    }

    fn full() -> MemoryBucket {
        let mut bucket = MemoryBucket::default();
        bucket.set(FORMAT, Some(home("one")));
        for place in 1..300 {
            bucket.set(&names::journal(place), Some(vec![1]));
        }
        bucket.set(&names::checkpoint(7, 1), Some(vec![2]));
        bucket.set(&names::node(1), Some(vec![3]));
        bucket.set("report.txt", Some(vec![4]));
        bucket
    }

    #[test]
    fn all_objects_of_a_home_are_deleted_and_no_others() {
        let mut bucket = full();
        assert_eq!(remove(&mut bucket), Ok(302));
        let left: Vec<_> = bucket.objects().map(|(name, _)| name).collect();
        assert_eq!(left, ["report.txt"]);
        assert!(remove(&mut bucket).is_err(), "it is gone");
    }

    #[test]
    fn a_removal_that_was_interrupted_can_be_repeated() {
        let mut bucket = Dying(full(), 100);
        assert_eq!(remove(&mut bucket), Err("503".into()));
        assert!(bucket.0.objects().count() < 300, "some are deleted");
        assert!(bucket.0.get(FORMAT).is_some(), "it goes last");
        assert!(remove(&mut bucket.0).is_ok());
        assert_eq!(bucket.0.objects().count(), 1);
    }

    #[test]
    fn what_another_program_keeps_is_not_deleted() {
        let mut bucket = full();
        bucket.set(FORMAT, Some(b"another program's".to_vec()));
        assert_eq!(remove(&mut bucket), Err(FOREIGN_HOME.into()));
        assert_eq!(bucket.objects().count(), 303);
    }
}
