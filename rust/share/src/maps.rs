//! Maps by ids: of topics, partitions and objects of the caller.
//!
//! A record looks up some thirty of them on its way, and the standard hash takes 200 instructions each time. This one
//! begins with a random number of the process, too, so that a client cannot prepare ids that
//! collide; one that measures answers might. So nothing here may grow without a bound of its own.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

/// A map whose keys are ids.
pub type IdMap<K, V> = HashMap<K, V, RandomState>;

/// A set of ids.
pub type IdSet<K> = HashSet<K, RandomState>;
