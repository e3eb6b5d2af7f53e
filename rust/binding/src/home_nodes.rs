//! The objects in which the brokers of a home describe themselves, for Python.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sharecore_bucket::{Answer, Bucket, What, names};
use sharecore_bucket_io::Transport;

use crate::bucket::settings;

/// The limit on reading an object below `nodes/`, where anybody with access to the bucket can write.
const NODE_BYTES_MAX: u64 = 64 << 10;

/// The objects in which the brokers of a home describe themselves.
#[pyclass(name = "HomeNodes", module = "sharecore._core", frozen)]
pub(crate) struct PyHomeNodes {
    url: String,
    bucket: Mutex<Box<dyn Bucket + Send>>,
}

#[pymethods]
impl PyHomeNodes {
    #[new]
    #[pyo3(signature = (url, *, endpoint, region, allow_http))]
    fn new(
        url: &str,
        endpoint: Option<String>,
        region: Option<String>,
        allow_http: bool,
    ) -> PyResult<Self> {
        let settings = settings(url, endpoint, region, allow_http)?;
        let transport = Transport::start(&settings).map_err(PyValueError::new_err)?;
        Ok(Self::of(transport.url().to_string(), Box::new(transport)))
    }

    /// Write a node's description, replacing the previous one. `OSError`: it may not be written.
    fn announce(&self, py: Python<'_>, node_id: i32, body: Vec<u8>) -> PyResult<()> {
        let name = names::node(node_id);
        let body = Arc::new(body);
        self.request(py, &What::Put { name, body })
    }

    /// Delete a node's description. `OSError`: it may not be deleted.
    fn withdraw(&self, py: Python<'_>, node_id: i32) -> PyResult<()> {
        let name = names::node(node_id);
        self.request(py, &What::Delete { name })
    }

    /// Return the node id and the body of each description. `OSError`: they cannot be read.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Vec<(i32, Bound<'py, PyBytes>)>> {
        let found =
            py.detach(|| nodes(&mut **self.held()).map_err(|why| format!("{}: {why}", self.url)));
        let found = found.map_err(PyOSError::new_err)?;
        let found = found.iter();
        Ok(found
            .map(|(node, body)| (*node, PyBytes::new(py, body)))
            .collect())
    }
}

impl PyHomeNodes {
    pub(crate) fn of(url: String, bucket: Box<dyn Bucket + Send>) -> Self {
        Self {
            url,
            bucket: Mutex::new(bucket),
        }
    }

    fn held(&self) -> MutexGuard<'_, Box<dyn Bucket + Send>> {
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, py: Python<'_>, what: &What) -> PyResult<()> {
        let answer = py.detach(|| match self.held().ask(what.clone()) {
            Answer::Unknown(why) => Err(format!(
                "{}: {} {}: {why}",
                self.url,
                what.kind(),
                what.name()
            )),
            _ => Ok(()),
        });
        answer.map_err(PyOSError::new_err)
    }
}

/// Return node ids and bodies of the objects below `nodes/`, ignoring objects that no broker wrote.
fn nodes(bucket: &mut dyn Bucket) -> Result<Vec<(i32, Vec<u8>)>, String> {
    // each broker asks again and again, and a list costs as much as a write: one page has all brokers
    let page = match bucket.ask(What::List {
        prefix: names::NODES.into(),
        after: None,
    }) {
        Answer::Names(page) => page,
        Answer::Unknown(why) => return Err(format!("list {}: {why}", names::NODES)),
        _ => Vec::new(),
    };
    let named: Vec<i32> = page
        .iter()
        .filter(|(_, bytes)| *bytes <= NODE_BYTES_MAX)
        .filter_map(|(name, _)| names::parse_node(name))
        .collect();
    let whats = named.iter().map(|node| What::Get {
        name: names::node(*node),
        range: None,
    });
    let mut found = Vec::new();
    let answers = bucket.ask_all(whats.collect());
    for (node, answer) in named.into_iter().zip(answers) {
        match answer {
            Answer::Bytes(body) => found.push((node, body)),
            Answer::Unknown(why) => return Err(format!("get {}: {why}", names::NODES)),
            // Deleted in the meantime
            _ => {}
        }
    }
    Ok(found)
}
