//! An object store: runs lie in a bucket that compares and swaps.
//!
//! Each reference is an object of its own, the head, which names the packs of what the reference leads to; it is written only if
//! it is still as it was read (`If-Match`), or absent (`If-None-Match: *`). Packs never change: they are there before the head
//! names them. What the user's own history has is shared by all runs, as bases.
//!
//! ```text
//! runs/RUN/head.json, side/RUN/FENCING.json   the commit, and what it takes to have it
//! bases/COMMIT.json                           the packs of a commit's whole history
//! packs/SHA256.pack
//! ```

mod access;
mod documents;
mod examine;
mod http;
mod objects;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;

use self::access::Access;
use self::documents::{Base, Document, Found, Head, Pack, SCHEMA, parse};
use self::http::{Act, Client, Condition, element};
use self::objects::{PackFile, Quarantine};
use super::answer::{Answer, Missed, RUNS, SIDE};
use super::call::Limits;
use super::transport::{Change, is_id};
use crate::git::base::error::{At as _, Error, Result};
use crate::git::repo::repository::Repo;
use crate::model::manifest::ObjectId;

/// A pack up to this size is in the head itself, in bytes: one request less.
const TAIL: u64 = 32 << 10;
/// A base that no head names any longer is not used when it is older: prune may be about to remove it. It is written anew.
const FRESH: Duration = Duration::from_secs(3 * 24 * 3600);
/// What nothing names is removed when it is older.
const STALE: Duration = Duration::from_secs(7 * 24 * 3600);
/// How many bases continue one another at most; then a history is uploaded as a whole again.
const DEEPEST: u32 = 16;

fn nonce() -> String {
    format!("{:032x}", fastrand::u128(..))
}

/// The key of a reference.
fn key_of(name: &str) -> String {
    // `%` and `+` of a reference's name are no plain characters of a key.
    let plain = |name: &str| name.replace('%', "~").replace('+', "~.");
    match (name.strip_prefix(RUNS), name.strip_prefix(SIDE)) {
        (Some(run), _) => format!("runs/{}/head.json", plain(run)),
        (_, Some(side)) => format!("side/{}.json", plain(side)),
        _ => format!("bases/{name}.json"),
    }
}

/// The reference of a key.
fn name_of(key: &str) -> Option<String> {
    let component = |plain: &str| plain.replace("~.", "+").replace('~', "%");
    if let Some(run) = key.strip_prefix("runs/") {
        let run = run.strip_suffix("/head.json")?;
        return Some(format!("{}{}", RUNS, component(run)));
    }
    let side = key.strip_prefix("side/")?.strip_suffix(".json")?;
    Some(format!("{SIDE}{}", component(side)))
}

fn pack_key(sha256: &str) -> String {
    format!("packs/{sha256}.pack")
}

/// An object store behind a remote's name.
#[derive(Clone, Debug)]
pub(super) struct Store {
    /// The URL as it is remembered.
    pub url: String,
    prefix: String,
    client: Client,
}

impl Store {
    /// The store at a URL; the reason where it is none.
    pub(super) fn at(url: &str) -> Result<Self, String> {
        let access = Access::of_url(url)?;
        Ok(Self {
            url: access.url.clone(),
            prefix: access.prefix.clone(),
            client: Client::new(access),
        })
    }

    /// References with what they name; see [`Remote::list`](super::Remote::list).
    pub(super) fn list(&self, place: &str, limits: &Limits<'_>) -> Answer<Vec<(String, ObjectId)>> {
        let Some(begin) = place.strip_suffix('*') else {
            let found = self.read::<Head>(&key_of(place), limits)?;
            let commit = found.and_then(|found| found.value.commit);
            return Ok(commit
                .map(|commit| (place.to_owned(), commit))
                .into_iter()
                .collect());
        };
        let folder = key_of(begin);
        let folder = folder.trim_end_matches(".json").trim_end_matches("/head");
        let found = self.read_all::<Head>(folder, limits)?;
        let named = found
            .into_iter()
            .filter_map(|(key, found)| Some((name_of(&key)?, found.value.commit?)));
        Ok(named.collect())
    }

    /// What the keys have that begin so.
    fn read_all<T: Document>(
        &self,
        begin: &str,
        limits: &Limits<'_>,
    ) -> Answer<Vec<(String, Found<T>)>> {
        let listed = self.keys(begin, limits)?;
        let keys = listed.into_iter().map(|found| found.key);
        // What ends otherwise is nothing of ours.
        let keys: Vec<String> = keys
            .filter(|key| key.strip_suffix(".json").is_some())
            .collect();
        let get = |key: &String| (key.clone(), Act::Get);
        let answers = self
            .client
            .run_all(keys.iter().map(get).collect(), limits)?;
        let mut all = Vec::new();
        for (key, answer) in keys.into_iter().zip(answers) {
            let found = parse(&key, answer?)?;
            all.extend(found.map(|found| (key, found)));
        }
        Ok(all)
    }

    /// The keys that begin so.
    fn keys(&self, begin: &str, limits: &Limits<'_>) -> Answer<Vec<Listed>> {
        let (mut all, mut mark) = (Vec::new(), None);
        loop {
            let request = (begin.to_owned(), Act::List(mark));
            let response = self.client.run(request, limits)?;
            if !response.is_done() {
                return Err(Missed::Refused(format!(
                    "HTTP {}: it lists nothing",
                    response.status
                )));
            }
            let text = String::from_utf8_lossy(&response.body);
            for part in text.split("<Contents>").skip(1) {
                let then = element(part, "LastModified");
                let then = then.and_then(|then| DateTime::parse_from_rfc3339(then).ok());
                let key = element(part, "Key").and_then(|key| key.strip_prefix(&self.prefix));
                all.extend(key.map(|key| Listed {
                    key: key.to_owned(),
                    is_stale: response.age(then).is_some_and(|age| age > STALE),
                }));
            }
            mark = element(&text, "NextContinuationToken").map(ToOwned::to_owned);
            if mark.is_none() {
                return Ok(all);
            }
        }
    }

    /// What a key has; `None` where there is nothing.
    fn read<T: Document>(&self, key: &str, limits: &Limits<'_>) -> Answer<Option<Found<T>>> {
        let request = (key.to_owned(), Act::Get);
        parse(key, self.client.run(request, limits)?)
    }

    /// Writes what a key is to have, if the condition holds; whether it did. An answer that was lost is read back.
    fn write<T: Document>(
        &self,
        key: &str,
        value: &T,
        condition: &Condition,
        limits: &Limits<'_>,
    ) -> Answer<bool> {
        let bytes = serde_json::to_vec(value).map_err(|error| Error::corrupt(error.to_string()))?;
        let request = (
            key.to_owned(),
            Act::Put(bytes.into(), Some(condition.clone())),
        );
        let answer = self.client.run(request, limits);
        match &answer {
            Ok(response) if response.is_done() => return Ok(true),
            // Nothing may have happened, or a try before the last one was taken; who is away says nothing of either.
            Ok(_) | Err(Missed::Cut(_) | Missed::Away { .. }) => {}
            Err(_) => return answer.map(|_| false),
        }
        let found = self.read::<T>(key, limits).map_err(|missed| match missed {
            Missed::Away { said, .. } => Missed::Cut(said),
            other => other,
        })?;
        if found
            .as_ref()
            .is_some_and(|found| found.value.nonce() == value.nonce())
        {
            return Ok(true);
        }
        let is_as_before = match condition {
            Condition::Absent => found.is_none(),
            Condition::Is(tag) => found.is_some_and(|found| found.tag == *tag),
        };
        match answer {
            // What was sent may still arrive.
            Err(Missed::Cut(said)) => Err(Missed::Cut(said)),
            Err(missed) if is_as_before => Err(missed),
            _ if is_as_before => Err(Missed::Away {
                said: "the store refused what it has not changed since".to_owned(),
                after: None,
            }),
            _ => Ok(false),
        }
    }

    /// Changes a reference; see [`Remote::push`](super::Remote::push).
    pub(super) fn push(
        &self,
        repo: &Repo,
        name: &str,
        (old, new): Change<'_>,
        limits: &Limits<'_>,
    ) -> Answer<()> {
        let key = key_of(name);
        let found = self.read::<Head>(&key, limits)?;
        let at = found.as_ref().and_then(|found| found.value.commit.as_ref());
        if at == new {
            return Ok(());
        }
        if at != old {
            return Err(Missed::Moved);
        }
        let before = found
            .as_ref()
            .filter(|_| at.is_some())
            .map(|found| &found.value);
        let head = match new {
            Some(new) => self.send(repo, new, before, limits)?,
            None => Head {
                schema: SCHEMA,
                nonce: nonce(),
                ..Head::default()
            },
        };
        let condition = found.map_or(Condition::Absent, |found| Condition::Is(found.tag));
        if self.write(&key, &head, &condition, limits)? {
            return Ok(());
        }
        Err(Missed::Moved)
    }

    /// Sends what a head lacks for a commit; the head that names it.
    fn send(
        &self,
        repo: &Repo,
        new: &ObjectId,
        before: Option<&Head>,
        limits: &Limits<'_>,
    ) -> Answer<Head> {
        let mut head = Head {
            tail: None,
            ..before.cloned().unwrap_or_default()
        };
        head.schema = SCHEMA;
        head.nonce = nonce();
        head.commit = Some(new.clone());
        // What a partial clone has of its history is not whole.
        if head.bases.is_empty() && !repo.is_partial_clone() {
            head.bases = objects::bases(repo, new, limits)?;
            for base in &head.bases {
                self.require_base(repo, base, limits)?;
            }
        }
        let mut without = head.bases.clone();
        without.extend(head.packs.last().map(|pack| pack.tip.clone()));
        let folder = objects::folder(repo)?;
        let files = objects::pack(repo, folder.path(), new, &without, limits)?;
        if let [file] = files.as_slice()
            && file.size <= TAIL
        {
            let content = fs::read(&file.path).at(&file.path)?;
            head.tail = Some(Pack {
                content: Some(STANDARD.encode(content)),
                ..Pack::of(file, new)
            });
        } else {
            head.packs.extend(self.upload(files, new, limits)?);
        }
        Ok(head)
    }

    fn upload(
        &self,
        files: Vec<PackFile>,
        tip: &ObjectId,
        limits: &Limits<'_>,
    ) -> Answer<Vec<Pack>> {
        let packs: Vec<Pack> = files.iter().map(|file| Pack::of(file, tip)).collect();
        let put = |file: PackFile| (pack_key(&file.sha256), Act::PutFile(file.path));
        for answer in self
            .client
            .run_all(files.into_iter().map(put).collect(), limits)?
        {
            // Without a head that names it nothing has changed.
            let response = answer?;
            if !response.is_done() {
                return Err(Missed::Refused(format!(
                    "HTTP {}: it takes no pack",
                    response.status
                )));
            }
        }
        Ok(packs)
    }

    /// Has the history of a commit of the user's in the store, once for all runs.
    fn require_base(&self, repo: &Repo, commit: &ObjectId, limits: &Limits<'_>) -> Answer<u32> {
        let key = key_of(&commit.0);
        let found = self.read::<Base>(&key, limits)?;
        let depth = found.as_ref().map_or(0, |found| found.value.depth);
        if found
            .as_ref()
            .is_some_and(|found| !found.value.is_gone() && found.age.is_some_and(|age| age < FRESH))
        {
            return Ok(depth);
        }
        let (base, condition) = match found {
            // Prune sees that it is in use.
            Some(found) if !found.value.is_gone() && found.age.is_some_and(|age| age < STALE) => {
                if let Some(on) = &found.value.on {
                    self.require_base(repo, on, limits)?;
                }
                let base = Base {
                    nonce: nonce(),
                    ..found.value
                };
                (base, Condition::Is(found.tag))
            }
            found => {
                let base = self.upload_base(repo, commit, limits)?;
                (
                    base,
                    found.map_or(Condition::Absent, |found| Condition::Is(found.tag)),
                )
            }
        };
        // Another machine that wrote it meanwhile has written the same history.
        self.write(&key, &base, &condition, limits)?;
        Ok(base.depth)
    }

    fn upload_base(&self, repo: &Repo, commit: &ObjectId, limits: &Limits<'_>) -> Answer<Base> {
        let known: Vec<ObjectId> = self
            .keys("bases/", limits)?
            .iter()
            .filter_map(|found| found.key.strip_prefix("bases/")?.strip_suffix(".json"))
            .filter(|id| *id != commit.0)
            .map(|id| ObjectId(id.to_owned()))
            .collect();
        let mut on = objects::nearest(repo, commit, &known, limits)?;
        let mut depth = 0;
        if let Some(before) = &on {
            depth = self.require_base(repo, before, limits)? + 1;
            if depth > DEEPEST {
                (on, depth) = (None, 0);
            }
        }
        let folder = objects::folder(repo)?;
        let files = objects::pack(repo, folder.path(), commit, on.as_slice(), limits)?;
        Ok(Base {
            schema: SCHEMA,
            nonce: nonce(),
            packs: self.upload(files, commit, limits)?,
            on,
            depth,
        })
    }

    /// Fetches references, or commits of the user's history by their ids; see [`Remote::fetch`](super::Remote::fetch).
    pub(super) fn fetch(
        &self,
        repo: &Repo,
        refs: &[(String, String)],
        limits: &Limits<'_>,
    ) -> Answer<()> {
        if self.obtain(repo, refs, false, limits)?.is_none() {
            return Ok(());
        }
        // Something is missing here that has to be here: all of it once more.
        self.obtain(repo, refs, true, limits)?
            .map_or(Ok(()), |said| Err(Error::corrupt(said).into()))
    }

    fn obtain(
        &self,
        repo: &Repo,
        refs: &[(String, String)],
        is_whole: bool,
        limits: &Limits<'_>,
    ) -> Answer<Option<String>> {
        let quarantine = Quarantine::new(repo)?;
        let mut commits = Vec::new();
        for (theirs, ours) in refs {
            if is_id(theirs) {
                let commit = ObjectId(theirs.clone());
                if !self.obtain_base(&quarantine, &commit, limits)? {
                    return Err(Missed::Moved);
                }
                commits.push((commit, ours.clone()));
                continue;
            }
            let found = self.read::<Head>(&key_of(theirs), limits)?;
            let Some((commit, head)) =
                found.and_then(|found| Some((found.value.commit.clone()?, found.value)))
            else {
                return Err(Missed::Moved);
            };
            let is_here = |id: &ObjectId| !is_whole && repo.has_object(id);
            for base in head.bases.iter().filter(|base| !is_here(base)) {
                if !self.obtain_base(&quarantine, base, limits)? && !repo.has_object(base) {
                    let said = format!(
                        "{theirs} goes on from commit {base}, which is neither here nor in the store: fetch it from where \
                         the project is"
                    );
                    return Err(Error::corrupt(said).into());
                }
            }
            let known = head.packs.iter().rposition(|pack| is_here(&pack.tip));
            let new = &head.packs[known.map_or(0, |at| at + 1)..];
            self.download(&quarantine, new, limits)?;
            if let Some(tail) = &head.tail {
                let content = tail
                    .content
                    .as_deref()
                    .and_then(|text| STANDARD.decode(text).ok());
                let place = quarantine.place(&tail.sha256);
                fs::write(&place, content.unwrap_or_default()).at(&place)?;
                quarantine.take(&tail.sha256, limits)?;
            }
            commits.push((commit, ours.clone()));
        }
        quarantine.hand_over(repo, &commits, limits)
    }

    /// Has the history of a commit in quarantine; `false`: the store does not have it.
    fn obtain_base(
        &self,
        quarantine: &Quarantine,
        commit: &ObjectId,
        limits: &Limits<'_>,
    ) -> Answer<bool> {
        let mut next = Some(commit.clone());
        for _ in 0..=DEEPEST {
            let Some(commit) = next else { break };
            let found = self.read::<Base>(&key_of(&commit.0), limits)?;
            let Some(found) = found.filter(|found| !found.value.is_gone()) else {
                return Ok(false);
            };
            self.download(quarantine, &found.value.packs, limits)?;
            next = found.value.on;
        }
        Ok(true)
    }

    fn download(&self, quarantine: &Quarantine, packs: &[Pack], limits: &Limits<'_>) -> Answer<()> {
        let new = packs
            .iter()
            .filter(|pack| !quarantine.place(&pack.sha256).exists());
        let new: Vec<&Pack> = new.collect();
        let get = |pack: &&Pack| {
            (
                pack_key(&pack.sha256),
                Act::GetTo(quarantine.place(&pack.sha256)),
            )
        };
        let answers = self.client.run_all(new.iter().map(get).collect(), limits)?;
        for (pack, answer) in new.iter().zip(answers) {
            if !answer?.is_done() {
                let said = format!("pack {} is not in the store", pack.sha256);
                return Err(Error::corrupt(said).into());
            }
            quarantine.take(&pack.sha256, limits)?;
        }
        Ok(())
    }

    /// Removes packs that nothing names and that were not written lately; see [`Remote::sweep`](super::Remote::sweep).
    pub(super) fn sweep(&self, limits: &Limits<'_>) -> Answer<()> {
        let mut stale = self.keys("packs/", limits)?;
        stale.retain(|found| found.is_stale);
        if stale.is_empty() {
            return Ok(());
        }
        let mut heads = self.read_all::<Head>("runs/", limits)?;
        heads.extend(self.read_all::<Head>("side/", limits)?);
        let mut bases: BTreeMap<String, Found<Base>> =
            self.read_all("bases/", limits)?.into_iter().collect();
        let heads = heads.iter().map(|(_, found)| &found.value);
        let is_stale = |found: &Found<Base>| found.age.is_some_and(|age| age > STALE);
        let in_use = bases.iter().filter(|(_, found)| !is_stale(found));
        let mut open: Vec<String> = in_use.map(|(key, _)| key.clone()).collect();
        open.extend(
            heads
                .clone()
                .flat_map(|head| &head.bases)
                .map(|id| key_of(&id.0)),
        );
        let mut named: BTreeSet<String> = heads
            .flat_map(|head| &head.packs)
            .map(|pack| pack_key(&pack.sha256))
            .collect();
        while let Some(key) = open.pop() {
            if let Some(found) = bases.remove(&key) {
                named.extend(found.value.packs.iter().map(|pack| pack_key(&pack.sha256)));
                open.extend(found.value.on.map(|id| key_of(&id.0)));
            }
        }
        for (key, found) in bases {
            let gone = Base {
                schema: SCHEMA,
                nonce: nonce(),
                ..Base::default()
            };
            // Whoever begins to use it meanwhile has written it anew.
            if !self.write(&key, &gone, &Condition::Is(found.tag), limits)? {
                named.extend(found.value.packs.iter().map(|pack| pack_key(&pack.sha256)));
            }
        }
        let doomed = stale
            .into_iter()
            .filter(|found| !named.contains(&found.key));
        let delete = |found: Listed| (found.key, Act::Delete);
        for answer in self.client.run_all(doomed.map(delete).collect(), limits)? {
            answer?;
        }
        Ok(())
    }

    /// Whether anybody can read it without keys.
    pub(super) fn is_public(&self, limits: &Limits<'_>) -> Result<Option<bool>> {
        let request = (String::new(), Act::List(None));
        Ok(match self.client.run_unsigned(request, limits) {
            Ok(response) => Some(response.is_done()),
            Err(Missed::Refused(_)) => Some(false),
            Err(Missed::Failed(error)) => return Err(error),
            Err(_) => None,
        })
    }
}

/// A key that was listed.
struct Listed {
    key: String,
    /// Whether it was written long ago.
    is_stale: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_have_keys_of_their_own() {
        for (name, key) in [
            ("refs/recover-runs/night", "runs/night/head.json"),
            ("refs/recover-runs/a%2fb+p+-", "runs/a~2fb~.p~.-/head.json"),
            ("refs/recover-runs-side/night/3", "side/night/3.json"),
        ] {
            assert_eq!(key_of(name), key);
            assert_eq!(name_of(key).as_deref(), Some(name));
        }
        assert_eq!(name_of("runs/night/other"), None);
        assert_eq!(key_of("0123"), "bases/0123.json");
    }
}
