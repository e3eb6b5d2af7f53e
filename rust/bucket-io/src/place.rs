//! The URL of a bucket and how it is reached.

use std::fmt;
use std::path::PathBuf;

/// The location of the objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A directory of this machine, such as a mounted disk or file server.
    Directory(PathBuf),
    /// A bucket of S3, or of an S3-compatible server.
    S3 {
        /// The bucket's name.
        bucket: String,
        /// The prefix of all object names, without a slash at either end; may be empty.
        prefix: String,
    },
}

/// Settings of a bucket. Credentials are not part of them: they come from the environment, or from the machine's role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The location of the objects.
    pub place: Place,
    /// URL of the server; None: `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, or Amazon's.
    pub endpoint: Option<String>,
    /// None: `AWS_REGION`, `AWS_DEFAULT_REGION`, or us-east-1.
    pub region: Option<String>,
    /// Whether a remote endpoint may be reached without TLS.
    pub allow_http: bool,
}

impl From<Place> for Settings {
    fn from(place: Place) -> Self {
        Self {
            place,
            endpoint: None,
            region: None,
            allow_http: false,
        }
    }
}

const SCHEMES: &str = "allowed: s3://BUCKET/PREFIX or file:///DIRECTORY";

impl Place {
    /// Parse a URL; errors never repeat anything that may be a password.
    pub fn parse(url: &str) -> Result<Self, String> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(format!("the bucket's URL has no scheme; {SCHEMES}"));
        };
        match scheme {
            "s3" => Self::parse_s3(rest),
            "file" => Self::parse_directory(rest),
            "gs" | "az" | "abfs" | "abfss" => Err(format!(
                "{scheme}:// is not supported, only S3 and S3-compatible servers; {SCHEMES}"
            )),
            "http" | "https" => Err(format!(
                "the bucket's URL contains a server name, which belongs in the endpoint; {SCHEMES}"
            )),
            _ => Err(format!("the bucket's URL has an unknown scheme; {SCHEMES}")),
        }
    }

    fn parse_s3(rest: &str) -> Result<Self, String> {
        if rest.contains(['@', '?', '#']) {
            return Err(
                "the bucket's URL contains @, ? or #: credentials and options do not belong in it. \
                 Credentials come from the environment (AWS_ACCESS_KEY_ID) or the machine's role"
                    .into(),
            );
        }
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
        let is_edge = |byte: Option<u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric());
        if !(3..=63).contains(&bucket.len())
            || !bucket.bytes().all(is_name)
            || !is_edge(bucket.bytes().next())
            || !is_edge(bucket.bytes().last())
        {
            return Err(
                "the bucket's URL names no bucket: 3 to 63 lower-case letters, digits, - and ., \
                 with a letter or digit at both ends"
                    .into(),
            );
        }
        if bucket.ends_with("--x-s3") {
            return Err(format!(
                "{bucket} is a directory bucket (S3 Express), whose lists are unordered; use a general purpose bucket"
            ));
        }
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let is_part = |part: &str| {
            !part.is_empty()
                && part != "."
                && part != ".."
                && part
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'='))
        };
        if !prefix.is_empty() && !prefix.split('/').all(is_part) {
            return Err(
                "the prefix in the bucket's URL may only contain letters, digits, - _ . = and single slashes between them"
                    .into(),
            );
        }
        Ok(Self::S3 {
            bucket: bucket.into(),
            prefix: prefix.into(),
        })
    }

    fn parse_directory(rest: &str) -> Result<Self, String> {
        if !rest.starts_with('/') {
            return Err(
                "the bucket's URL is not an absolute path: file:///DIRECTORY has three slashes"
                    .into(),
            );
        }
        Ok(Self::Directory(rest.into()))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => write!(f, "file://{}", path.display()),
            Self::S3 { bucket, prefix } if prefix.is_empty() => write!(f, "s3://{bucket}"),
            Self::S3 { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_and_written_back() {
        for url in [
            "s3://backups",
            "s3://my.backups-1/a/b_c=1/d.e",
            "file:///mnt/backup",
        ] {
            assert_eq!(Place::parse(url).unwrap().to_string(), url);
        }
        let slash = Place::parse("s3://backups/queue/").unwrap();
        assert_eq!(slash.to_string(), "s3://backups/queue");
    }

    #[test]
    fn a_url_that_is_wrong_is_refused_and_its_secrets_are_not_repeated() {
        for (url, says) in [
            ("backups", "no scheme"),
            ("ftp://backups", "unknown scheme"),
            ("gs://backups", "not supported"),
            ("https://s3.example/backups", "endpoint"),
            ("s3://", "names no bucket"),
            ("s3://Backups", "names no bucket"),
            ("s3://ab", "names no bucket"),
            ("s3://-backups", "names no bucket"),
            ("s3://key:secret@backups/x", "credentials"),
            ("s3://backups/x?secret=1", "credentials"),
            ("s3://backups//x", "single slashes"),
            ("s3://backups/a/../b", "single slashes"),
            ("s3://backups/a b", "single slashes"),
            ("s3://backups--use1-az4--x-s3/x", "Express"),
            ("file://mnt", "absolute"),
        ] {
            let error = Place::parse(url).unwrap_err();
            assert!(error.contains(says), "{url}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
