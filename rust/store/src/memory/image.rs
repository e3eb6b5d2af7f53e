//! Taking the files of a disk in memory out, and putting others in.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use super::{MemoryDisk, content::Content, lock};

impl MemoryDisk {
    /// All files as they are, by their names.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        let inner = lock(&self.inner);
        let name = |path: &PathBuf| {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into()
        };
        let files = inner.names.iter();
        files
            .map(|(path, node)| (name(path), lock(node).now.clone()))
            .collect()
    }

    /// Puts other files, which are durable, in the place of all. Open files can no longer be used.
    pub fn replace(&self, files: Vec<(String, Vec<u8>)>) {
        let mut inner = lock(&self.inner);
        let durable = |bytes| Arc::new(Mutex::new(Content::durable(bytes)));
        inner.names = files
            .into_iter()
            .map(|(name, bytes)| (self.dir.join(name), durable(bytes)))
            .collect();
        inner.history.clear();
        inner.life += 1;
    }
}
