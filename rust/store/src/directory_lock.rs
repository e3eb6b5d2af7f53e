//! Keeps two processes from using one directory.

use std::{
    fs::{self, File},
    path::Path,
};

use crate::error::StoreError;

const NAME: &str = "lock";

/// A directory locked until this is dropped, or the process ends.
pub(crate) struct DirectoryLock(File);

impl DirectoryLock {
    /// Locks `dir`, creating it if need be.
    pub(crate) fn create(dir: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(dir).map_err(StoreError::io(dir))?;
        let path = dir.join(NAME);
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(StoreError::io(&path))?;
        Self::take(dir, file)
    }

    /// Locks `dir` if it ever held a store, without creating a file.
    pub(crate) fn existing(dir: &Path) -> Result<Option<Self>, StoreError> {
        let path = dir.join(NAME);
        match File::open(&path) {
            Ok(file) => Self::take(dir, file).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io(path)(error)),
        }
    }

    fn take(dir: &Path, file: File) -> Result<Self, StoreError> {
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(fs::TryLockError::WouldBlock) => Err(StoreError::Locked(dir.into())),
            Err(fs::TryLockError::Error(error)) => Err(StoreError::io(dir.join(NAME))(error)),
        }
    }
}

impl Drop for DirectoryLock {
    /// Closing the file is not enough: a child just forked by another thread has it open too, until it executes.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::DirectoryLock;
    use crate::error::StoreError;

    #[test]
    fn a_directory_is_free_once_its_lock_is_dropped_though_a_child_still_has_the_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let lock = DirectoryLock::create(dir.path()).expect("nobody has it");
        assert!(matches!(
            DirectoryLock::create(dir.path()),
            Err(StoreError::Locked(_))
        ));
        // What a fork leaves in the child
        let inherited = lock.0.try_clone().expect("a descriptor");
        drop(lock);
        DirectoryLock::existing(dir.path())
            .expect("free again")
            .expect("a store was there");
        drop(inherited);
    }
}
