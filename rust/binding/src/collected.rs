//! Lets Python's cycle collector follow references: `collected!` lists the fields of a class that hold them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use sharecore_share::{Deadlines, Outcomes, Session, Staging};
use sharecore_wire::Readers;
use smallvec::{Array, SmallVec};

use crate::interest::Interest;
use crate::leader::PyLeader;
use crate::uuids::PartitionId;

/// A value that may refer to Python objects.
pub(crate) trait Refers {
    /// Visits each reference.
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError>;
}

impl<T> Refers for Py<T> {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self)
    }
}

/// Types without references.
macro_rules! plain {
    ($($number:ty),*) => {
        $(impl Refers for $number {
            fn show(&self, _visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
                Ok(())
            }
        })*
    };
}

plain!(usize, u64, str);

impl<T: Refers + ?Sized> Refers for Box<T> {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        (**self).show(visit)
    }
}

/// Assumes that the visited owner holds the only reference to the `Arc`.
impl<T: Refers + ?Sized> Refers for Arc<T> {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        (**self).show(visit)
    }
}

impl<A: Refers, B: Refers> Refers for (A, B) {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.show(visit)?;
        self.1.show(visit)
    }
}

impl<T: Refers> Refers for Option<T> {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.iter().try_for_each(|each| each.show(visit))
    }
}

impl<T: Refers> Refers for Vec<T> {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.iter().try_for_each(|each| each.show(visit))
    }
}

impl<A: Array> Refers for SmallVec<A>
where
    A::Item: Refers,
{
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.iter().try_for_each(|each| each.show(visit))
    }
}

impl<T: Refers> Refers for VecDeque<T> {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.iter().try_for_each(|each| each.show(visit))
    }
}

impl<K, V: Refers, S: BuildHasher> Refers for HashMap<K, V, S> {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.values().try_for_each(|each| each.show(visit))
    }
}

impl<K, V: Refers> Refers for BTreeMap<K, V> {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.values().try_for_each(|each| each.show(visit))
    }
}

impl<T: Refers> Refers for Deadlines<T> {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.iter().try_for_each(|each| each.show(visit))
    }
}

impl<T: Refers> Refers for Staging<T> {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.all().try_for_each(|each| each.show(visit))
    }
}

impl Refers for Session<PartitionId, Py<PyLeader>> {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.leaders().try_for_each(|leader| leader.show(visit))
    }
}

impl<T: Refers> Refers for Readers<T> {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.iter().try_for_each(|each| each.show(visit))
    }
}

impl<N: Refers, O: Refers, L: Refers> Refers for Outcomes<N, O, L> {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.lingering()
            .map_or(Ok(()), |lingering| lingering.show(visit))?;
        self.iter().try_for_each(|(name, outcome)| {
            name.show(visit)?;
            outcome.show(visit)
        })
    }
}

impl Refers for Interest {
    fn show(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.all().try_for_each(|session| session.show(visit))
    }
}

/// Implements `__traverse__` over the listed fields and `__clear__`, which resets the `cut` fields to their defaults to break
/// cycles.
macro_rules! collected {
    ($class:ty { $($field:tt),* $(,)? }) => {
        #[pyo3::pymethods]
        impl $class {
            #[allow(clippy::needless_pass_by_value, reason = "the signature is pyo3's")]
            fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
                $($crate::collected::Refers::show(&self.$field, &visit)?;)*
                Ok(())
            }
        }
    };
    ($class:ty { $($field:tt),* $(,)? } cut { $($cut:tt),* $(,)? }) => {
        $crate::collected::collected!($class { $($field),* });

        #[pyo3::pymethods]
        impl $class {
            fn __clear__(&mut self) {
                $(self.$cut = Default::default();)*
            }
        }
    };
}

pub(crate) use collected;
