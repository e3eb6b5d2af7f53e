//! A bucket in memory, for tests and simulations.

use std::collections::BTreeMap;

use crate::call::{Answer, Body, Bucket, PAGE_MIN, What};

/// Names per page of a list; few, so that tests need several pages.
const PAGE: usize = PAGE_MIN;

/// A bucket in memory that answers at once and correctly; network simulations lose, delay and repeat calls and answers
/// outside of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryBucket {
    objects: BTreeMap<String, Body>,
}

impl MemoryBucket {
    /// Return all objects with their content, in name order.
    pub fn objects(&self) -> impl Iterator<Item = (&str, &Body)> {
        self.objects
            .iter()
            .map(|(name, body)| (name.as_str(), body))
    }

    /// Return the content of an object.
    pub fn get(&self, name: &str) -> Option<&Body> {
        self.objects.get(name)
    }

    /// Set the content of an object, or remove it, to simulate a fault of the bucket.
    pub fn set(&mut self, name: &str, body: Option<Vec<u8>>) {
        match body {
            Some(body) => drop(self.objects.insert(name.into(), body.into())),
            None => drop(self.objects.remove(name)),
        }
    }
}

impl Bucket for MemoryBucket {
    fn ask(&mut self, what: What) -> Answer {
        match what {
            What::Create { name, body } => {
                if self.objects.contains_key(&name) {
                    return Answer::Exists;
                }
                self.objects.insert(name, body);
                Answer::Done
            }
            What::Put { name, body } => {
                self.objects.insert(name, body);
                Answer::Done
            }
            What::Get { name, range } => match self.objects.get(&name) {
                None => Answer::Absent,
                Some(body) => {
                    let end = body.len() as u64;
                    let range = range.unwrap_or(0..end);
                    let (from, to) = (range.start.min(end), range.end.min(end));
                    Answer::Bytes(body[from as usize..to.max(from) as usize].to_vec())
                }
            },
            What::List { prefix, after } => {
                let names = self
                    .objects
                    .range(prefix.clone()..)
                    .take_while(|(name, _)| name.starts_with(&prefix))
                    .filter(|(name, _)| after.as_ref().is_none_or(|after| *name > after));
                let page = names.map(|(name, body)| (name.clone(), body.len() as u64));
                Answer::Names(page.take(PAGE).collect())
            }
            What::Delete { name } => {
                self.objects.remove(&name);
                Answer::Done
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(bucket: &mut MemoryBucket, name: &str, body: &[u8]) -> Answer {
        bucket.ask(What::Create {
            name: name.into(),
            body: body.to_vec().into(),
        })
    }

    fn get(bucket: &mut MemoryBucket, range: Option<std::ops::Range<u64>>) -> Answer {
        bucket.ask(What::Get {
            name: "a".into(),
            range,
        })
    }

    #[test]
    fn a_name_is_created_once() {
        let mut bucket = MemoryBucket::default();
        assert_eq!(create(&mut bucket, "a", b"1234"), Answer::Done);
        assert_eq!(create(&mut bucket, "a", b"other"), Answer::Exists);
        assert_eq!(get(&mut bucket, None), Answer::Bytes(b"1234".into()));
        assert_eq!(get(&mut bucket, Some(1..3)), Answer::Bytes(b"23".into()));
        assert_eq!(get(&mut bucket, Some(3..9)), Answer::Bytes(b"4".into()));
        let deleted = bucket.ask(What::Delete { name: "a".into() });
        assert_eq!(deleted, Answer::Done);
        assert_eq!(get(&mut bucket, None), Answer::Absent);
    }

    #[test]
    fn a_list_goes_on_page_by_page() {
        let mut bucket = MemoryBucket::default();
        for n in 0..250 {
            create(&mut bucket, &format!("x/{n:03}"), b"12");
        }
        create(&mut bucket, "y", b"");
        let (mut listed, mut after) = (0, None);
        loop {
            let Answer::Names(names) = bucket.ask(What::List {
                prefix: "x/".into(),
                after,
            }) else {
                panic!("a list answers with names")
            };
            let Some((last, size)) = names.last() else {
                break;
            };
            assert_eq!(*size, 2);
            listed += names.len();
            after = Some(last.clone());
        }
        assert_eq!(listed, 250);
    }
}
