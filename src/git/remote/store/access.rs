//! Where a store is and who may: its URL, and the keys as the tools of AWS find them.

use std::collections::HashMap;
use std::env;
use std::path::{Path, PathBuf};

use rusty_s3::{Bucket, Credentials, UrlStyle};

use crate::durable::Root;

/// A configuration file of AWS is not larger, in bytes.
const MOST: u64 = 4 << 20;
/// What a region's name is where nobody names one: that of stores that have none.
const REGION: &str = "us-east-1";

/// The bucket of a store, and what lies in it.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// The URL as it is remembered: each part of it in one place.
    pub url: String,
    /// Where requests go.
    pub bucket: Bucket,
    /// Before each key: empty, or it ends in `/`.
    pub prefix: String,
    /// The profile that names the keys.
    profile: String,
    files: [Ini; 2],
}

/// The sections of a file with their keys.
type Ini = HashMap<String, HashMap<String, String>>;

impl Access {
    /// What `s3://bucket/prefix?endpoint=URL&region=NAME` is; the reason where it is nothing.
    pub(super) fn of_url(url: &str) -> Result<Self, String> {
        let rest = url
            .strip_prefix("s3://")
            .ok_or("its URL is not of the form s3://BUCKET/PREFIX")?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let prefix = prefix.trim_matches('/');
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if bucket.is_empty() || !bucket.chars().all(is_plain) {
            return Err(format!("'{bucket}' is no name of a bucket"));
        }
        if !prefix.chars().all(|c| is_plain(c) || c == '/') || prefix.contains("//") {
            return Err(format!(
                "the prefix '{prefix}' has other characters than A-Z a-z 0-9 - _ . /"
            ));
        }
        let (mut endpoint, mut region) = (None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("endpoint", value)) => endpoint = Some(value.to_owned()),
                Some(("region", value)) => region = Some(value.to_owned()),
                _ => return Err(format!("'{pair}' is neither endpoint=URL nor region=NAME")),
            }
        }
        let var = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let profile = var("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        let files = [
            ("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            ("AWS_CONFIG_FILE", "config"),
        ];
        let files = files.map(|(variable, name)| {
            let own = || Some(PathBuf::from(var("HOME")?).join(".aws").join(name));
            let file = var(variable).map(PathBuf::from).or_else(own);
            file.map_or_else(Ini::new, |file| read(&file))
        });
        let configured = |key: &str| files[1].get(&profile)?.get(key).cloned();
        let region = region
            .or_else(|| var("AWS_REGION"))
            .or_else(|| var("AWS_DEFAULT_REGION"))
            .or_else(|| configured("region"))
            .unwrap_or_else(|| REGION.to_owned());
        let endpoint = endpoint
            .or_else(|| var("AWS_ENDPOINT_URL_S3"))
            .or_else(|| var("AWS_ENDPOINT_URL"))
            .or_else(|| configured("endpoint_url"));
        // With an endpoint of its own there may be no name for each bucket; where a name has a dot, no certificate is for it.
        let style = match &endpoint {
            None if !bucket.contains('.') => UrlStyle::VirtualHost,
            _ => UrlStyle::Path,
        };
        let canonical = match &endpoint {
            Some(endpoint) => format!("s3://{bucket}/{prefix}?endpoint={endpoint}"),
            None => format!("s3://{bucket}/{prefix}"),
        };
        let endpoint = endpoint.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
        if endpoint.contains('@') {
            return Err(
                "its endpoint has a user or a password, which do not belong there".to_owned(),
            );
        }
        let wrong = |error: &dyn std::fmt::Display| format!("its endpoint '{endpoint}': {error}");
        let address = endpoint.parse().map_err(|error| wrong(&error))?;
        let bucket = Bucket::new(address, style, bucket.to_owned(), region)
            .map_err(|error| wrong(&error))?;
        let prefix = if prefix.is_empty() {
            String::new()
        } else {
            format!("{prefix}/")
        };
        Ok(Self {
            url: canonical,
            bucket,
            prefix,
            profile,
            files,
        })
    }

    /// The keys: of the environment, else of the profile; `None` where there are none.
    pub(super) fn credentials(&self) -> Option<Credentials> {
        let has_profile = env::var_os("AWS_PROFILE").is_some_and(|name| !name.is_empty());
        if !has_profile
            && let Some(found) = Credentials::from_env().filter(|found| !found.key().is_empty())
        {
            return Some(found);
        }
        self.files.iter().find_map(|file| {
            let section = file.get(&self.profile)?;
            let (key, secret) = (
                section.get("aws_access_key_id")?,
                section.get("aws_secret_access_key")?,
            );
            Some(match section.get("aws_session_token") {
                Some(token) => Credentials::new_with_token(key, secret, token),
                None => Credentials::new(key, secret),
            })
        })
    }
}

/// The sections of a file, `[profile x]` as `x`; none where it cannot be read.
fn read(file: &Path) -> Ini {
    let bytes = file
        .parent()
        .and_then(|folder| Root::shared(folder).read_at_most(file, MOST).ok());
    parse(&String::from_utf8_lossy(&bytes.unwrap_or_default()))
}

fn parse(text: &str) -> Ini {
    let (mut all, mut section) = (Ini::new(), String::new());
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with(['#', ';']) {
            continue;
        }
        let title = trimmed
            .strip_prefix('[')
            .and_then(|line| line.split(']').next());
        if let Some(title) = title {
            let title = title.trim();
            let name = title.strip_prefix("profile ").unwrap_or(title);
            section = String::from(name.trim());
        } else if let Some((key, value)) = trimmed.split_once('=')
            // What is indented belongs to the key before.
            && !line.starts_with(char::is_whitespace)
        {
            all.entry(section.clone())
                .or_default()
                .insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_bucket_prefix_endpoint_and_region() {
        let found =
            Access::of_url("s3://b/a/team/?endpoint=http://127.0.0.1:9000&region=r1").unwrap();
        assert_eq!(found.prefix, "a/team/");
        assert_eq!(found.url, "s3://b/a/team?endpoint=http://127.0.0.1:9000");
        assert_eq!(found.bucket.region(), "r1");
        assert_eq!(found.bucket.base_url().as_str(), "http://127.0.0.1:9000/b/");
        for (wrong, why) in [
            ("https://b/x", "not of the form"),
            ("s3:///x", "no name of a bucket"),
            ("s3://b/a b", "the prefix"),
            ("s3://b/a//b", "the prefix"),
            ("s3://b/a?secret=1", "neither"),
            ("s3://b/a?endpoint=ftp://x", "endpoint"),
            ("s3://b/a?endpoint=http://me:pw@x", "a password"),
        ] {
            let error = Access::of_url(wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn profiles_are_read_as_the_tools_of_aws_read_them() {
        let text = "# c\n[default]\naws_access_key_id = A\ns3 =\n  endpoint_url = x\n[profile team]\nregion=eu-1\n\
                    endpoint_url = http://h\n";
        let found = parse(text);
        assert_eq!(found["default"]["aws_access_key_id"], "A");
        assert!(!found["default"].contains_key("endpoint_url"));
        assert_eq!(found["team"]["region"], "eu-1");
        assert_eq!(found["team"]["endpoint_url"], "http://h");
    }
}
