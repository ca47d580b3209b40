//! Finds out what a store guarantees: of eight who write at once, one is taken.

use super::http::{Act, Condition};
use super::{Store, nonce};
use crate::git::remote::answer::{Answer, Missed};
use crate::git::remote::call::Limits;
use crate::git::remote::check::{Examined, Finding};

/// How many write at a time when a store is examined.
const WRITERS: usize = 8;

impl Store {
    /// Finds out what the store guarantees; see [`Remote::examine`](crate::git::remote::Remote::examine).
    pub(in crate::git::remote) fn examine(
        &self,
        nonce: &str,
        size: u64,
        limits: &Limits<'_>,
    ) -> Answer<Examined> {
        let key = format!("check/{nonce}");
        let mut findings = Vec::new();
        let mut note = |name, holds, required, detail: &str| {
            let detail = detail.to_owned();
            findings.push(Finding {
                name,
                holds: Some(holds),
                required,
                detail,
            });
        };
        let created = self.race(&key, &Condition::Absent, limits)?;
        let detail = match created {
            1 => "of eight writers of a new key one is first".to_owned(),
            0 => "it takes no write".to_owned(),
            many => format!(
                "{many} of eight writers were told that they made one new key: it ignores If-None-Match"
            ),
        };
        note("create", created == 1, true, &detail);
        let get = (key.clone(), Act::Get);
        let read = self.client.run(get, limits)?;
        let is_listed = self
            .keys(&key, limits)?
            .iter()
            .any(|found| found.key == key);
        let is_visible = read.is_done() && read.tag.is_some() && is_listed;
        let detail = if is_visible {
            "what was written is read and listed at once, with a tag"
        } else {
            "what was written is not read and listed at once, or has no tag"
        };
        note("visible", is_visible, true, detail);
        if let Some(tag) = read.tag {
            let swapped = self.race(&key, &Condition::Is(tag), limits)?;
            let detail = match swapped {
                1 => "of eight writers from one state one is taken".to_owned(),
                0 => "no write from a state is taken".to_owned(),
                many => format!(
                    "{many} of eight writers from one state were taken: it ignores If-Match"
                ),
            };
            note("compare_and_swap", swapped == 1, true, &detail);
        }
        if size > 0 {
            let length = usize::try_from(size).unwrap_or(usize::MAX);
            let noise: Vec<u8> = (0..length).map(|_| fastrand::u8(..)).collect();
            let put = (key.clone(), Act::Put(noise.into(), None));
            match self.client.run(put, limits) {
                Err(Missed::Refused(said)) => note("size", false, false, &said),
                other => {
                    other?;
                    note("size", true, false, "an object of that size is taken");
                }
            }
        }
        let delete = (key.clone(), Act::Delete);
        let (holds, detail) = match self.client.run(delete, limits) {
            Ok(response) if response.is_done() => {
                (true, "what nothing names is removed by prune".to_owned())
            }
            Ok(_) => (false, "it removes nothing".to_owned()),
            Err(Missed::Refused(said)) => (false, said),
            Err(missed) => return Err(missed),
        };
        note("delete", holds, false, &detail);
        let left = (!holds).then(|| format!("{}{key}", self.prefix));
        Ok(Examined { findings, left })
    }

    /// How many of eight who write a key at once, on one condition, are taken.
    fn race(&self, key: &str, condition: &Condition, limits: &Limits<'_>) -> Answer<usize> {
        let put = |number: usize| {
            (
                key.to_owned(),
                Act::Put(
                    format!("{} {number}", nonce()).into_bytes().into(),
                    Some(condition.clone()),
                ),
            )
        };
        let answers = self
            .client
            .run_all((0..WRITERS).map(put).collect(), limits)?;
        let mut taken = 0;
        for answer in answers {
            match answer {
                Ok(response) => taken += usize::from(response.is_done()),
                // What does not know conditions at all says so.
                Err(Missed::Refused(_)) if taken == 0 => {}
                Err(missed) => return Err(missed.of_reading()),
            }
        }
        Ok(taken)
    }
}
