//! What is written to a store as JSON: the heads of references and the bases of histories, and how either is read.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::http::Response;
use super::objects::PackFile;
use crate::git::base::error::Error;
use crate::git::remote::answer::{Answer, Missed};
use crate::git::remote::transport::is_id;
use crate::model::manifest::ObjectId;

/// What is written; a newer one is not read.
pub(super) const SCHEMA: u32 = 1;

/// What a reference is in a store.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Head {
    pub schema: u32,
    /// What it names; `null`: it was removed.
    pub commit: Option<ObjectId>,
    /// Another one in each, so that no two heads have one tag.
    pub nonce: String,
    /// Commits whose whole histories are assumed.
    pub bases: Vec<ObjectId>,
    /// The oldest first.
    pub packs: Vec<Pack>,
    /// A small pack with what those lack, as base64.
    pub tail: Option<Pack>,
}

/// A pack, or some with one end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pack {
    pub sha256: String,
    pub size: u64,
    /// The commit that is whole with this pack and those before it.
    pub tip: ObjectId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// The history of a commit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Base {
    pub schema: u32,
    pub nonce: String,
    pub packs: Vec<Pack>,
    /// What it continues.
    pub on: Option<ObjectId>,
    /// How many it continues, one after another.
    pub depth: u32,
}

impl Base {
    /// Whether its packs were removed: every history has some.
    pub(super) fn is_gone(&self) -> bool {
        self.packs.is_empty()
    }
}

/// What was read of a key.
pub(super) struct Found<T> {
    pub value: T,
    pub tag: String,
    pub age: Option<Duration>,
}

/// What is written as JSON.
pub(super) trait Document: Serialize + DeserializeOwned {
    fn nonce(&self) -> &str;
    /// Whether it is what such a thing is.
    fn is_sound(&self) -> bool;
}

impl Document for Head {
    fn nonce(&self) -> &str {
        &self.nonce
    }

    fn is_sound(&self) -> bool {
        let mut ids = self.commit.iter().chain(&self.bases);
        ids.all(|id| is_id(&id.0)) && self.packs.iter().chain(&self.tail).all(Pack::is_sound)
    }
}

impl Document for Base {
    fn nonce(&self) -> &str {
        &self.nonce
    }

    fn is_sound(&self) -> bool {
        self.on.iter().all(|id| is_id(&id.0)) && self.packs.iter().all(Pack::is_sound)
    }
}

impl Pack {
    pub(super) fn of(file: &PackFile, tip: &ObjectId) -> Self {
        Self {
            sha256: file.sha256.clone(),
            size: file.size,
            tip: tip.clone(),
            content: None,
        }
    }

    fn is_sound(&self) -> bool {
        let is_hash =
            self.sha256.len() == 64 && self.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash && is_id(&self.tip.0)
    }
}

/// What an answer has, which is believed in nothing: it may have been written by anybody.
pub(super) fn parse<T: Document>(key: &str, response: Response) -> Answer<Option<Found<T>>> {
    if response.status == 404 {
        return Ok(None);
    }
    let age = response.age(response.written);
    let Response {
        tag: Some(tag),
        body,
        ..
    } = response
    else {
        return Err(Missed::Refused(format!("it gives no tag for {key}")));
    };
    let damaged = |what: &str| Error::corrupt(format!("{key} in the store {what}"));
    let value: serde_json::Value =
        serde_json::from_slice(&body).map_err(|error| damaged(&format!("is damaged: {error}")))?;
    let schema = value["schema"].as_u64().unwrap_or_default();
    if schema > u64::from(SCHEMA) {
        return Err(
            Error::Newer(format!("{key} in the store was written by a newer version")).into(),
        );
    }
    let value: T =
        serde_json::from_value(value).map_err(|error| damaged(&format!("is damaged: {error}")))?;
    if !value.is_sound() || schema == 0 {
        return Err(damaged("has names that are none").into());
    }
    Ok(Some(Found { value, tag, age }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_believed_in_nothing() {
        let read = |body: &str| {
            let response = Response {
                status: 200,
                tag: Some("t".to_owned()),
                now: None,
                written: None,
                body: body.as_bytes().to_vec(),
            };
            parse::<Head>("k", response)
        };
        let id = "1".repeat(40);
        let head = |commit: &str, sha: &str, schema: u32| {
            format!(
                "{{\"schema\":{schema},\"commit\":\"{commit}\",\"nonce\":\"n\",\"bases\":[],\"tail\":null,\
                 \"packs\":[{{\"sha256\":\"{sha}\",\"size\":1,\"tip\":\"{id}\"}}]}}"
            )
        };
        assert!(matches!(read(&head(&id, &"a".repeat(64), 1)), Ok(Some(_))));
        for (wrong, sha) in [("../../x", "a".repeat(64)), (&id, "../x".to_owned())] {
            assert!(matches!(
                read(&head(wrong, &sha, 1)),
                Err(Missed::Failed(Error::Corrupt(_)))
            ));
        }
        assert!(matches!(
            read(&head(&id, &"a".repeat(64), 2)),
            Err(Missed::Failed(Error::Newer(_)))
        ));
        assert!(matches!(read("{"), Err(Missed::Failed(Error::Corrupt(_)))));
    }
}
