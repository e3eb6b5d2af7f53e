//! Smooth weighted round robin over topics: a topic that gets less than its part gets more later.

use std::collections::HashMap;

/// The largest credit or debt of a topic, in records.
const OWED_MAX: i64 = 100_000;

/// Fractions of a record in credits.
const RECORD: i128 = 1_000_000_000;

/// Parts of a fetch by topic; a topic not listed has weight 1.
#[derive(Debug, Default)]
pub struct Weights {
    weights: HashMap<String, i64>,
    /// The credit of each topic, in fractions of a record.
    credits: HashMap<String, i128>,
}

impl Weights {
    /// Creates weights by topic name.
    pub fn new(weights: impl IntoIterator<Item = (String, i64)>) -> Self {
        let weights = weights.into_iter();
        Self {
            weights: weights
                .map(|(topic, weight)| (topic, weight.max(1)))
                .collect(),
            credits: HashMap::new(),
        }
    }

    /// The topic's part of `records` among topics whose weights add up to `sum`, in fractions of a record.
    fn part(&self, topic: &str, records: i64, sum: i64) -> i128 {
        let weight = self.weights.get(topic).copied().unwrap_or(1);
        i128::from(records) * i128::from(weight) * RECORD / i128::from(sum.max(1))
    }

    fn credit(&self, topic: &str) -> i128 {
        self.credits.get(topic).copied().unwrap_or(0)
    }

    fn sum<'a>(&self, topics: impl Iterator<Item = &'a str>) -> i64 {
        let weight = |topic| self.weights.get(topic).copied().unwrap_or(1);
        topics.map(weight).sum()
    }

    /// Splits `records` among topics that have records.
    pub fn quotas<T: AsRef<str>>(&self, topics: &[T], records: i64) -> Vec<i64> {
        let sum = self.sum(topics.iter().map(AsRef::as_ref));
        let due = |topic: &T| self.part(topic.as_ref(), records, sum) + self.credit(topic.as_ref());
        let mut left = records;
        let mut quotas: Vec<i64> = Vec::with_capacity(topics.len());
        for topic in topics {
            let whole = due(topic).div_euclid(RECORD).clamp(0, i128::from(left));
            left -= whole as i64;
            quotas.push(whole as i64);
        }
        let mut order: Vec<usize> = (0..topics.len()).collect();
        // the remainder goes to the topics with the largest fractions
        order.sort_by_key(|&at| i128::from(quotas[at]) * RECORD - due(&topics[at]));
        let each = left.checked_div(topics.len() as i64).unwrap_or(0);
        let odd = left.checked_rem(topics.len() as i64).unwrap_or(0) as usize;
        for (place, at) in order.into_iter().enumerate() {
            quotas[at] += each + i64::from(place < odd);
        }
        quotas
    }

    /// A fetch has acquired records of topics that all had some.
    ///
    /// A topic with fewer records than its part forgoes the rest and gets no credit for it.
    pub fn took<T: AsRef<str>>(&mut self, taken: &[(T, i64, bool)]) {
        let shared = || taken.iter().filter(|(_, _, is_dry)| !is_dry);
        let sum = self.sum(shared().map(|(topic, ..)| topic.as_ref()));
        let total: i64 = shared().map(|(_, records, _)| records).sum();
        let bound = i128::from(OWED_MAX) * RECORD;
        for (topic, records, is_dry) in taken {
            let topic = topic.as_ref();
            let mut credit = self.credit(topic);
            if *is_dry {
                credit = credit.min(0);
            } else {
                credit += self.part(topic, total, sum) - i128::from(*records) * RECORD;
            }
            if credit == 0 {
                self.credits.remove(topic);
            } else {
                let credit = credit.clamp(-bound, bound);
                self.credits.insert(topic.to_owned(), credit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights() -> Weights {
        Weights::new([("urgent".to_owned(), 8), ("bulk".to_owned(), 1)])
    }

    /// Records of each topic after this many fetches, both topics having enough.
    fn run(weights: &mut Weights, fetches: usize, records: i64, batch: i64) -> (i64, i64) {
        let (mut urgent, mut bulk) = (0, 0);
        for _ in 0..fetches {
            let quotas = weights.quotas(&["urgent", "bulk"], records);
            assert_eq!(quotas.iter().sum::<i64>(), records);
            let whole = |quota: i64| (quota + batch - 1) / batch * batch;
            let taken = (whole(quotas[0]), whole(quotas[1]));
            weights.took(&[("urgent", taken.0, false), ("bulk", taken.1, false)]);
            urgent += taken.0;
            bulk += taken.1;
        }
        (urgent, bulk)
    }

    #[test]
    fn fetches_of_one_record_are_weighted_too() {
        let mut weights = weights();
        for _ in 0..20 {
            let (urgent, bulk) = run(&mut weights, 9, 1, 1);
            assert!(urgent >= 7 && bulk <= 2, "{urgent} and {bulk}");
        }
        assert_eq!(run(&mut weights, 900, 1, 1), (800, 100));
    }

    #[test]
    fn a_fetch_is_divided_and_the_remainder_is_carried() {
        assert_eq!(run(&mut weights(), 9, 100, 1), (800, 100));
    }

    #[test]
    fn whole_batches_are_evened_out_later() {
        let (urgent, bulk) = run(&mut weights(), 900, 100, 64);
        assert!(
            (urgent - 8 * bulk).abs() < urgent / 50,
            "{urgent} and {bulk}"
        );
    }

    #[test]
    fn a_topic_that_had_nothing_is_owed_nothing() {
        let mut weights = weights();
        for _ in 0..100 {
            weights.took(&[("urgent", 0, true), ("bulk", 100, false)]);
        }
        assert_eq!(run(&mut weights, 1, 9, 1), (8, 1));
    }

    #[test]
    fn topics_without_a_weight_share_evenly() {
        let weights = Weights::default();
        assert_eq!(weights.quotas(&["a", "b", "c"], 9), [3, 3, 3]);
        assert!(weights.quotas::<&str>(&[], 9).is_empty());
    }
}
