//! Exporting the files of a memory disk, and importing others.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use super::{MemoryDisk, content::Content, lock};

impl MemoryDisk {
    /// All current files, by name.
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

    /// Replaces all files with others, which are durable. Open files become invalid.
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
