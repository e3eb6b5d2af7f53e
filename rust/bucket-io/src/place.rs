//! The URL of a bucket and how it is reached.

use std::fmt;
use std::path::PathBuf;

use sharecore_bucket::probe::Rights;

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
    /// A bucket of Google Cloud Storage.
    Gcs {
        /// The bucket's name.
        bucket: String,
        /// As for S3.
        prefix: String,
    },
    /// A container of Azure Blob Storage.
    Azure {
        /// The storage account.
        account: String,
        /// The container's name.
        container: String,
        /// As for S3.
        prefix: String,
    },
}

/// Settings of a bucket. Credentials are not part of them: they come from the environment, or from the machine's role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The location of the objects.
    pub place: Place,
    /// URL of the server; None: from the environment (`AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`,
    /// `STORAGE_EMULATOR_HOST`, `AZURE_STORAGE_ENDPOINT`), or the cloud's.
    pub endpoint: Option<String>,
    /// Of S3; None: `AWS_REGION`, `AWS_DEFAULT_REGION`, or us-east-1.
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

const SCHEMES: &str = "allowed: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX or file:///DIRECTORY";

impl Place {
    /// Parse a URL; errors never repeat anything that may be a password.
    pub fn parse(url: &str) -> Result<Self, String> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(format!("the bucket's URL has no scheme; {SCHEMES}"));
        };
        match scheme {
            "s3" => Self::parse_s3(rest),
            "gs" => Self::parse_gcs(rest),
            "az" => Self::parse_azure(rest),
            "file" => Self::parse_directory(rest),
            "gcs" => Err(format!("Google Cloud Storage has the scheme gs; {SCHEMES}")),
            "azure" | "adl" | "abfs" | "abfss" | "wasb" | "wasbs" => {
                Err(format!("Azure Blob Storage has the scheme az; {SCHEMES}"))
            }
            "http" | "https" => Err(format!(
                "the bucket's URL contains a server name, which belongs in the endpoint; {SCHEMES}"
            )),
            _ => Err(format!("the bucket's URL has an unknown scheme; {SCHEMES}")),
        }
    }

    /// The permissions that requests need, in the words of the place.
    pub fn rights(&self) -> Rights {
        match self {
            Self::Directory(_) | Self::S3 { .. } => Rights::S3,
            Self::Gcs { .. } => Rights::GCS,
            Self::Azure { .. } => Rights::AZURE,
        }
    }

    /// The name of the store, for messages.
    pub fn store(&self) -> &'static str {
        match self {
            Self::Directory(_) => "a directory",
            Self::S3 { .. } => "S3",
            Self::Gcs { .. } => "Google Cloud Storage",
            Self::Azure { .. } => "Azure",
        }
    }

    fn parse_s3(rest: &str) -> Result<Self, String> {
        check_no_credentials(rest, "AWS_ACCESS_KEY_ID")?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if !is_name(bucket, b"-.") {
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
        Ok(Self::S3 {
            bucket: bucket.into(),
            prefix: parse_prefix(prefix)?,
        })
    }

    fn parse_gcs(rest: &str) -> Result<Self, String> {
        check_no_credentials(rest, "GOOGLE_APPLICATION_CREDENTIALS")?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if !is_name(bucket, b"-_.") {
            return Err(
                "the bucket's URL names no bucket: 3 to 63 lower-case letters, digits, -, _ and ., \
                 with a letter or digit at both ends"
                    .into(),
            );
        }
        Ok(Self::Gcs {
            bucket: bucket.into(),
            prefix: parse_prefix(prefix)?,
        })
    }

    fn parse_azure(rest: &str) -> Result<Self, String> {
        check_no_credentials(rest, "AZURE_STORAGE_ACCOUNT_KEY")?;
        let (account, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let (container, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if !is_name(account, b"") || account.len() > 24 {
            return Err(format!(
                "the bucket's URL names no storage account: 3 to 24 lower-case letters and digits; {SCHEMES}"
            ));
        }
        if !is_name(container, b"-") || container.contains("--") {
            return Err(format!(
                "the bucket's URL names no container: 3 to 63 lower-case letters, digits and single -, \
                 with a letter or digit at both ends; {SCHEMES}"
            ));
        }
        let prefix = parse_prefix(prefix)?;
        if prefix.split('/').any(|part| part.ends_with('.')) {
            return Err("the prefix in the bucket's URL has a part that ends with a dot, which Azure does not keep".into());
        }
        Ok(Self::Azure {
            account: account.into(),
            container: container.into(),
            prefix,
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
            Self::S3 { bucket, prefix } => write!(f, "s3://{bucket}{}", Below(prefix)),
            Self::Gcs { bucket, prefix } => write!(f, "gs://{bucket}{}", Below(prefix)),
            Self::Azure {
                account,
                container,
                prefix,
            } => write!(f, "az://{account}/{container}{}", Below(prefix)),
        }
    }
}

/// A prefix after its slash, if there is one.
struct Below<'a>(&'a str);

impl fmt::Display for Below<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, "/{}", self.0)
    }
}

fn check_no_credentials(rest: &str, variable: &str) -> Result<(), String> {
    if rest.contains(['@', '?', '#']) {
        return Err(format!(
            "the bucket's URL contains @, ? or #: credentials and options do not belong in it. \
             Credentials come from the environment ({variable}) or the machine's role"
        ));
    }
    Ok(())
}

/// Whether a text has 3 to 63 lower-case letters, digits and other allowed bytes, which are not at its ends.
fn is_name(text: &str, others: &[u8]) -> bool {
    let is_plain = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9');
    let bytes = text.as_bytes();
    (3..=63).contains(&bytes.len())
        && bytes
            .iter()
            .all(|byte| is_plain(byte) || others.contains(byte))
        && bytes.first().is_some_and(is_plain)
        && bytes.last().is_some_and(is_plain)
}

fn parse_prefix(prefix: &str) -> Result<String, String> {
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
    Ok(prefix.into())
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
            "gs://backups",
            "gs://my_backups.example/a/b",
            "az://account1/backups",
            "az://account1/back-ups/a/b_c=1/d.e",
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
            ("gcs://backups", "scheme gs"),
            ("gs://-backups", "names no bucket"),
            (
                "gs://key:secret@backups/x",
                "GOOGLE_APPLICATION_CREDENTIALS",
            ),
            ("gs://backups/a//b", "single slashes"),
            (
                "abfss://backups@account1.dfs.core.windows.net/x",
                "scheme az",
            ),
            ("az://backups", "names no container"),
            ("az://my-backups/x1x", "names no storage account"),
            ("az://account1/back--ups", "names no container"),
            ("az://account1/backups/x./y", "ends with a dot"),
            (
                "az://account1/backups?sig=secret",
                "AZURE_STORAGE_ACCOUNT_KEY",
            ),
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
