//! Buckets for Python: their URLs, and whether one can be relied on.

use std::sync::mpsc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sharecore_bucket::probe::{Outcome, Probe, Verdict};
use sharecore_bucket_io::{HAS_S3, Place, Settings, Transport};

/// Name, outcome (`passed`, `wrong`, `unanswered`) and why.
type Checked = (&'static str, &'static str, String);
/// The checks, the verdict (`fit`, `grows`, `unfit`, `unknown`) and why.
type Probed = (Vec<Checked>, &'static str, String);

/// Return the URL as it is written everywhere else; raise `ValueError` for one that names no bucket.
#[pyfunction]
pub(crate) fn bucket_url(url: &str) -> PyResult<String> {
    let place = Place::parse(url).map_err(PyValueError::new_err)?;
    Ok(place.to_string())
}

/// Whether this build reaches S3.
#[pyfunction]
pub(crate) fn reaches_s3() -> bool {
    HAS_S3
}

/// Try whether a bucket can be relied on. `random` names the probe's objects; `ValueError`: wrong settings.
#[pyfunction]
#[pyo3(signature = (url, endpoint, region, allow_http, random))]
pub(crate) fn probe_bucket(
    py: Python<'_>,
    url: &str,
    endpoint: Option<String>,
    region: Option<String>,
    allow_http: bool,
    random: (u64, u64),
) -> PyResult<Probed> {
    let place = Place::parse(url).map_err(PyValueError::new_err)?;
    let settings = Settings {
        place,
        endpoint,
        region,
        allow_http,
    };
    let random = u128::from(random.0) << 64 | u128::from(random.1);
    let probe = py.detach(|| probed(&settings, random));
    let probe = probe.map_err(PyValueError::new_err)?;
    let checks = probe.checks().iter().map(|check| {
        let (outcome, why) = match &check.outcome {
            Outcome::Passed => ("passed", String::new()),
            Outcome::Wrong(why) => ("wrong", why.clone()),
            Outcome::Unanswered(why) => ("unanswered", why.clone()),
        };
        (check.name, outcome, why)
    });
    let checks = checks.collect();
    let (verdict, why) = match probe.verdict() {
        Verdict::Fit => ("fit", String::new()),
        Verdict::FitButGrows(why) => ("grows", why),
        Verdict::Unfit(why) => ("unfit", why),
        Verdict::Unknown(why) => ("unknown", why),
    };
    Ok((checks, verdict, why))
}

fn probed(settings: &Settings, random: u128) -> Result<Probe, String> {
    let transport = Transport::start(settings)?;
    let mut probe = Probe::new(random);
    while !probe.is_ended() {
        let calls = probe.calls();
        if calls.is_empty() {
            return Err("the thread that sends requests to the bucket has ended".into());
        }
        let (answered, answers) = mpsc::channel();
        for call in calls {
            let answered = answered.clone();
            // who probes waits for all answers
            transport.send(call, move |id, answer| drop(answered.send((id, answer))));
        }
        drop(answered);
        for (id, answer) in answers {
            probe.answer(id, answer);
        }
    }
    Ok(probe)
}
