//! Injected failures, for tests: full or broken disks are hard to come by.

use std::{io, sync::Mutex};

/// Where a failure can be injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultPoint {
    /// Writing a frame to the journal; half of it is written.
    Write,
    /// Syncing the journal.
    Sync,
    /// Starting a thread for reads.
    Thread,
}

#[derive(Debug, Clone, Copy)]
struct Planned {
    point: FaultPoint,
    errno: i32,
    skip: u64,
    times: u64,
}

/// The planned failures.
#[derive(Debug, Default)]
pub struct Fault(Mutex<Vec<Planned>>);

impl Fault {
    /// Makes the operation at `point` fail `times` times with `errno`, after `skip` successes.
    pub fn plan(&self, point: FaultPoint, errno: i32, skip: u64, times: u64) {
        self.0
            .lock()
            .expect("no panic while planning")
            .push(Planned {
                point,
                errno,
                skip,
                times,
            });
    }

    /// Cancels all planned failures.
    pub fn clear(&self) {
        self.0.lock().expect("no panic while planning").clear();
    }

    pub(crate) fn at(&self, point: FaultPoint) -> io::Result<()> {
        let mut planned = self.0.lock().expect("no panic while planning");
        planned.retain(|p| p.times > 0);
        let Some(next) = planned.iter_mut().find(|p| p.point == point) else {
            return Ok(());
        };
        if next.skip > 0 {
            next.skip -= 1;
            return Ok(());
        }
        next.times -= 1;
        Err(io::Error::from_raw_os_error(next.errno))
    }
}
