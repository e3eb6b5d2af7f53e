//! The probe on correct buckets, and on buckets with one fault.

use sharecore_bucket::probe::{CREATES, Outcome, Probe, Rights, Verdict};
use sharecore_bucket::{Answer, Bucket, MemoryBucket, What};

/// Probe a bucket that receives the calls of a stage in order.
fn probe(ask: impl FnMut(What) -> Answer) -> Probe {
    probe_with(Rights::S3, ask)
}

fn probe_with(rights: Rights, mut ask: impl FnMut(What) -> Answer) -> Probe {
    let mut probe = Probe::new(7, rights);
    while !probe.is_ended() {
        let calls = probe.calls();
        assert!(!calls.is_empty(), "a probe that has not ended has calls");
        assert!(probe.calls().is_empty(), "calls are returned once");
        for call in calls {
            let answer = ask(call.what);
            probe.answer(call.id, answer);
        }
    }
    probe
}

fn failed(probe: &Probe) -> Vec<&'static str> {
    let failed = probe.checks().iter();
    failed
        .filter(|check| check.outcome != Outcome::Passed)
        .map(|check| check.name)
        .collect()
}

#[test]
fn a_bucket_that_is_right_is_fit_and_nothing_stays_in_it() {
    let mut bucket = MemoryBucket::default();
    let probe = probe(|what| bucket.ask(what));
    assert_eq!(probe.verdict(), Verdict::Fit);
    assert_eq!(probe.checks().len(), 11);
    assert_eq!(bucket.objects().count(), 0);
}

/// `s3s-fs` behaves like this: correct for single requests, wrong for concurrent ones.
#[test]
fn a_bucket_that_lets_two_creates_at_once_succeed_is_refused() {
    let mut bucket = MemoryBucket::default();
    let mut creates = 0;
    let probe = probe(|what| match what {
        What::Create { name, body } if !name.ends_with("-00") => {
            creates += 1;
            // Only in the fifth round, and only for the last of eight
            if creates == 5 * CREATES {
                return bucket.ask(What::Put { name, body });
            }
            bucket.ask(What::Create { name, body })
        }
        what => bucket.ask(what),
    });
    let Verdict::Unfit(why) = probe.verdict() else {
        panic!("{:?}", probe.checks())
    };
    assert!(why.contains("creates are not atomic: 2 of 8"), "{why}");
    assert!(why.contains("two brokers could both lead"), "{why}");
    assert_eq!(bucket.objects().count(), 0, "it is cleared all the same");
}

#[test]
fn a_bucket_that_says_412_and_writes_all_the_same_is_refused() {
    let mut bucket = MemoryBucket::default();
    let probe = probe(|what| match what {
        What::Create { name, body } if bucket.get(&name).is_some() => {
            bucket.ask(What::Put { name, body });
            Answer::Exists
        }
        what => bucket.ask(what),
    });
    assert!(failed(&probe).contains(&"16 times 8 creates at once"));
    assert!(matches!(probe.verdict(), Verdict::Unfit(_)));
}

#[test]
fn a_bucket_without_conditions_is_refused() {
    let mut bucket = MemoryBucket::default();
    let probe = probe(|what| match what {
        What::Create { name, body } => bucket.ask(What::Put { name, body }),
        what => bucket.ask(what),
    });
    let Verdict::Unfit(why) = probe.verdict() else {
        panic!("{:?}", probe.checks())
    };
    assert!(why.contains("two brokers could both lead"), "{why}");
    assert!(failed(&probe).contains(&"create again"));
}

#[test]
fn creates_without_an_answer_may_have_won() {
    let mut bucket = MemoryBucket::default();
    let probe = probe(|what| {
        let is_race = matches!(&what, What::Create { name, .. } if !name.ends_with("-00"));
        match bucket.ask(what) {
            Answer::Done if is_race => Answer::Unknown("create: 409 Conflict".into()),
            answer => answer,
        }
    });
    assert_eq!(probe.verdict(), Verdict::Fit);
}

#[test]
fn each_missing_right_is_named_in_the_words_of_the_store() {
    const BLOBS: &str = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs";
    for (rights, kind, right) in [
        (Rights::S3, "get", "s3:GetObject"),
        (Rights::S3, "create", "s3:PutObject"),
        (Rights::S3, "list", "s3:ListBucket"),
        (Rights::S3, "delete", "s3:DeleteObject"),
        (Rights::GCS, "get", "storage.objects.get"),
        (Rights::GCS, "create", "storage.objects.create"),
        (Rights::GCS, "list", "storage.objects.list"),
        (Rights::GCS, "delete", "storage.objects.delete"),
        (Rights::AZURE, "get", &format!("{BLOBS}/read (r")),
        (Rights::AZURE, "create", &format!("{BLOBS}/write (cw")),
        (Rights::AZURE, "list", &format!("{BLOBS}/read (l")),
        (Rights::AZURE, "delete", &format!("{BLOBS}/delete (d")),
    ] {
        let mut bucket = MemoryBucket::default();
        let probe = probe_with(rights, |what| {
            if what.kind() == kind {
                return Answer::Unknown(format!("{kind} x: 403 AccessDenied"));
            }
            bucket.ask(what)
        });
        let (Verdict::Unknown(why) | Verdict::FitButGrows(why)) = probe.verdict() else {
            panic!("{kind}: {:?}", probe.verdict())
        };
        assert!(why.contains(&format!("Allow {right}")), "{kind}: {why}");
        assert_eq!(
            kind == "delete",
            matches!(probe.verdict(), Verdict::FitButGrows(_))
        );
    }
}

#[test]
fn a_bucket_out_of_reach_is_neither_fit_nor_refused() {
    let probe = probe(|what| Answer::Unknown(format!("{}: connection refused", what.kind())));
    assert!(matches!(probe.verdict(), Verdict::Unknown(why) if why.contains("refused")));
    assert_eq!(
        failed(&probe),
        ["list", "read what is absent", "create"],
        "it gives up where nothing can be created"
    );
}
