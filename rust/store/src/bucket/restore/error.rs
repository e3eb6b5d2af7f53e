//! Why a restore fails.

use std::{fmt, path::PathBuf};

use crate::error::StoreError;

/// Why a restore failed.
#[derive(Debug)]
pub enum BucketError {
    /// The bucket gives no definite answer.
    Unreachable(String),
    /// An object is missing, damaged or inconsistent with others; with its name.
    Damaged(String),
    /// The bucket has no such moment.
    Nothing(String),
    /// The directory is not empty.
    NotEmpty(PathBuf),
    /// The local disk failed.
    Disk(StoreError),
}

impl fmt::Display for BucketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "the bucket cannot be read: {why}"),
            Self::Damaged(what) => write!(f, "the bucket is damaged: {what}"),
            Self::Nothing(what) => f.write_str(what),
            Self::NotEmpty(dir) => {
                write!(f, "{} is not empty: use a new directory", dir.display())
            }
            Self::Disk(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for BucketError {}

impl From<StoreError> for BucketError {
    fn from(error: StoreError) -> Self {
        Self::Disk(error)
    }
}
