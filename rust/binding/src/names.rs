//! `sharecore._core.Expression`: matches names against a regular expression in bounded time and memory.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson;
use regex_automata::{Anchored, Input, MatchErrorKind, MatchKind};

/// Size of the automaton's cache, and how often it may be cleared; an expression that needs more is refused. Each byte of a
/// name costs one step, so this bounds the time that any expression can take.
const CACHE_BYTES: usize = 2 << 20;
const CACHE_CLEARED_MAX: usize = 8;

/// A regular expression that matches whole names.
#[pyclass(name = "Expression", module = "sharecore._core", frozen)]
pub(crate) struct PyExpression {
    whole: DFA,
}

fn refuse(reason: &dyn std::fmt::Display) -> PyErr {
    PyValueError::new_err(reason.to_string())
}

#[pymethods]
impl PyExpression {
    /// `bytes_max`: approximate maximum size of the compiled expression.
    #[new]
    fn new(py: Python<'_>, expression: &str, bytes_max: usize) -> PyResult<Self> {
        let config = DFA::config()
            .match_kind(MatchKind::All)
            .unicode_word_boundary(true)
            .skip_cache_capacity_check(true)
            .cache_capacity(CACHE_BYTES)
            .minimum_cache_clear_count(Some(CACHE_CLEARED_MAX));
        let mut builder = DFA::builder();
        builder
            .configure(config)
            .thompson(thompson::Config::new().nfa_size_limit(Some(bytes_max)));
        let pattern = format!("^(?:{expression})$");
        let whole = py.detach(move || builder.build(&pattern).map_err(Box::new));
        let whole = whole.map_err(|error| refuse(&error))?;
        Ok(Self { whole })
    }

    /// Returns the names that match, in order.
    #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
    fn matching(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Vec<String>> {
        py.detach(|| {
            let mut cache = self.whole.create_cache();
            let mut found = Vec::new();
            for name in names {
                let input = Input::new(&name).anchored(Anchored::Yes);
                match self.whole.try_search_fwd(&mut cache, &input) {
                    Ok(Some(_)) => found.push(name),
                    Ok(None) => {}
                    Err(error) if matches!(error.kind(), MatchErrorKind::Quit { .. }) => {}
                    Err(_) => return Err(refuse(&"the expression takes too long")),
                }
            }
            Ok(found)
        })
    }
}
