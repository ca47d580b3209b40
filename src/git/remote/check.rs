//! What a server guarantees, found out on a reference for the moment: nothing of a run relies on a promise.
//!
//! The one that matters most is that the server compares and sets. A push of git's reads the reference first and compares by
//! itself, so that an ordinary push never shows it: here one has read, and waits in its hook until another one was faster.

use std::cell::{Cell, RefCell};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use git2::{ObjectType, Oid};
use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{Answer, SCRATCH, Update};
use super::call::Limits;
use super::transport::GitServer;
use crate::durable::temporary_prefix;
use crate::git::base::error::{At as _, Error, Result};
use crate::git::repo::repository::{IDENTITY, Repo};
use crate::model::manifest::ObjectId;

/// Where it is fetched to.
const FETCHED: &str = "refs/recover/+check";

/// Something that a run needs of a server, or can do without.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "remote_check")]
pub struct Finding {
    /// Which.
    #[schemars(extend("enum" = ["create", "visible", "fast_forward", "compare_and_swap", "size", "delete"]))]
    pub name: &'static str,
    /// Whether the server gives it; `null` where that could not be tried.
    pub holds: Option<bool>,
    /// Whether a run needs it.
    pub required: bool,
    /// What it means, or what the server said.
    pub detail: String,
}

/// What came of an examination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examined {
    /// In the order in which they were tried.
    pub findings: Vec<Finding>,
    /// The reference that the server did not delete.
    pub left: Option<String>,
}

impl Examined {
    /// Whether everything holds that a run needs.
    pub fn is_usable(&self) -> bool {
        self.findings
            .iter()
            .all(|finding| !finding.required || finding.holds == Some(true))
    }
}

/// The examination under way.
struct Trial<'a> {
    repo: &'a Repo,
    server: &'a GitServer,
    limits: &'a Limits<'a>,
    nonce: &'a str,
    name: String,
    findings: Vec<Finding>,
}

impl GitServer {
    /// Finds out what the server guarantees; see [`Remote::examine`](super::Remote::examine).
    pub(super) fn examine(
        &self,
        repo: &Repo,
        nonce: &str,
        size: u64,
        limits: &Limits<'_>,
    ) -> Result<Answer<Examined>> {
        let name = format!("{SCRATCH}{nonce}");
        let mut trial = Trial {
            repo,
            server: self,
            limits,
            nonce,
            name,
            findings: Vec::new(),
        };
        if let Some(away) = trial.run(size)? {
            return Ok(away.map(|()| Examined {
                findings: Vec::new(),
                left: None,
            }));
        }
        let left = trial.clean_up()?;
        Ok(Answer::Done(Examined {
            findings: trial.findings,
            left,
        }))
    }
}

impl Trial<'_> {
    /// Tries one after the other; what makes the rest pointless ends it. An answer where the server cannot be reached.
    fn run(&mut self, size: u64) -> Result<Option<Answer<()>>> {
        let first = self.commit("first", None, None)?;
        match self.push(None, &first)? {
            Answer::Done(()) => {
                self.note("create", Some(true), "a reference of a run can be made");
            }
            away @ (Answer::Away { .. } | Answer::Cut(_)) => return Ok(Some(away)),
            refused => {
                self.note("create", Some(false), &said(refused));
                return Ok(None);
            }
        }
        match self.is_listed(&first)? {
            Answer::Done(true) => {
                let detail = "what was pushed is listed and fetched at once";
                self.note("visible", Some(true), detail);
            }
            Answer::Done(false) => {
                let detail = "the server hides the reference, or another one answers than took it";
                self.note("visible", Some(false), detail);
                return Ok(None);
            }
            other => return Ok(Some(other.map(drop))),
        }
        let (winner, loser) = (
            self.commit("winner", Some(&first), None)?,
            self.commit("loser", Some(&first), None)?,
        );
        let (late, between) = self.push_late(&first, &loser, &winner)?;
        match between {
            None => {
                let why = "no hook can be run in this repository's folder (noexec?)";
                self.note("compare_and_swap", None, why);
                self.note("fast_forward", None, why);
                return Ok(None);
            }
            Some(Answer::Done(())) => {
                self.note("fast_forward", Some(true), "a state follows the one before");
            }
            Some(away @ (Answer::Away { .. } | Answer::Cut(_))) => return Ok(Some(away)),
            Some(refused) => {
                self.note("fast_forward", Some(false), &said(refused));
                return Ok(None);
            }
        }
        let is_winner = match self.is_listed(&winner)? {
            Answer::Done(is_winner) => is_winner,
            other => return Ok(Some(other.map(drop))),
        };
        match late {
            Answer::Done(()) => {
                let detail = "of two pushes from one state both were taken";
                self.note("compare_and_swap", Some(false), detail);
            }
            away @ (Answer::Away { .. } | Answer::Cut(_)) if is_winner => return Ok(Some(away)),
            _ => {
                let detail = "of two pushes from one state one is refused";
                self.note("compare_and_swap", Some(is_winner), detail);
            }
        }
        if size > 0 {
            let large = self.commit("large", Some(&winner), Some(size))?;
            let sent = self.push(Some(&winner), &large)?;
            self.note_optional("size", sent, "an object of that size is taken");
        }
        Ok(None)
    }

    /// Deletes the reference, which says whether the server does that. Its name where it stays.
    fn clean_up(&mut self) -> Result<Option<String>> {
        let listed = self.server.list(self.repo, &self.name, self.limits)?;
        let Answer::Done(listed) = listed else {
            return Ok(Some(self.name.clone()));
        };
        let Some((_, at)) = listed.into_iter().next() else {
            return Ok(None);
        };
        let update = Update {
            name: self.name.clone(),
            old: Some(at),
            new: None,
        };
        let deleted = self.server.push(self.repo, &update, self.limits)?;
        let stays = deleted != Answer::Done(());
        self.note_optional("delete", deleted, "ended runs can be removed by prune");
        Ok(stays.then(|| self.name.clone()))
    }

    /// Notes something that a run needs.
    fn note(&mut self, name: &'static str, holds: Option<bool>, detail: &str) {
        self.findings.push(Finding {
            name,
            holds,
            required: true,
            detail: detail.to_owned(),
        });
    }

    /// Notes something that a run can do without, by what came of trying it; `done` is what that means where it worked.
    fn note_optional(&mut self, name: &'static str, tried: Answer<()>, done: &str) {
        let (holds, detail) = match tried {
            Answer::Done(()) => (Some(true), done.to_owned()),
            Answer::Refused(said) => (Some(false), said),
            other => (None, said(other)),
        };
        self.findings.push(Finding {
            name,
            holds,
            required: false,
            detail,
        });
    }

    fn push(&self, old: Option<&ObjectId>, new: &ObjectId) -> Result<Answer<()>> {
        self.server
            .push(self.repo, &self.update(old, new), self.limits)
    }

    fn update(&self, old: Option<&ObjectId>, new: &ObjectId) -> Update {
        Update {
            name: self.name.clone(),
            old: old.cloned(),
            new: Some(new.clone()),
        }
    }

    /// Whether the reference is listed with this commit, and can be fetched.
    fn is_listed(&self, commit: &ObjectId) -> Result<Answer<bool>> {
        let listed = match self.server.list(self.repo, &self.name, self.limits)? {
            Answer::Done(listed) => listed,
            other => return Ok(other.map(|_| false)),
        };
        if listed.first().is_none_or(|(_, at)| at != commit) {
            return Ok(Answer::Done(false));
        }
        let place = format!("{FETCHED}-{}", self.nonce);
        let fetched = self.server.fetch(
            self.repo,
            &[(self.name.clone(), place.clone())],
            self.limits,
        )?;
        if let Ok(mut reference) = self.repo.inner.find_reference(&place) {
            reference
                .delete()
                .map_err(Error::git("delete a reference for the moment"))?;
        }
        Ok(match fetched {
            Answer::Moved => Answer::Done(false),
            other => other.map(|()| true),
        })
    }

    /// Pushes `loser` on top of `before` with a push that has read the reference before `winner` was pushed there by another
    /// one. What came of both; of the second one nothing where the first never waited for it.
    fn push_late(
        &self,
        before: &ObjectId,
        loser: &ObjectId,
        winner: &ObjectId,
    ) -> Result<(Answer<()>, Option<Answer<()>>)> {
        let parent = self.repo.recover_dir()?;
        let prefix = format!("{}check", temporary_prefix());
        let folder = tempfile::Builder::new()
            .prefix(&prefix)
            .tempdir_in(&parent)
            .at(&parent)?;
        let (hook, ready, go) = (
            folder.path().join("pre-push"),
            folder.path().join("ready"),
            folder.path().join("go"),
        );
        // It ends by itself when nobody comes.
        let script = "#!/bin/sh\ncd \"${0%/*}\" && : > ready && n=0 && while [ ! -e go ] && [ $n -lt 1200 ]\n\
                      do sleep 0.1; n=$((n + 1)); done\n";
        fs::write(&hook, script).at(&hook)?;
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).at(&hook)?;
        let (is_done, between) = (Cell::new(false), RefCell::new(None));
        let stopped = || {
            if !is_done.get() && ready.exists() {
                is_done.set(true);
                *between.borrow_mut() = Some(self.push(Some(before), winner));
                // Without it the hook waits for its end.
                let _ = fs::write(&go, "");
            }
            self.limits.is_stopped()
        };
        let limits = self.limits.with(&stopped);
        let late = self.server.push_with_hooks(
            self.repo,
            &self.update(Some(before), loser),
            folder.path(),
            &limits,
        )?;
        Ok((late, between.into_inner().transpose()?))
    }

    /// Writes a commit with nothing in it, or with a file of this many bytes.
    fn commit(&self, what: &str, parent: Option<&ObjectId>, size: Option<u64>) -> Result<ObjectId> {
        let failed = || Error::git("write a commit for the moment");
        let odb = self.repo.inner.odb().map_err(failed())?;
        let tree = match size {
            None => self.repo.empty_tree()?.0,
            Some(size) => {
                let mut noise =
                    fastrand::Rng::with_seed(u64::from_str_radix(self.nonce, 16).unwrap_or(1));
                let length = usize::try_from(size).unwrap_or(usize::MAX);
                let content: Vec<u8> = (0..length).map(|_| noise.u8(..)).collect();
                let blob = odb.write(ObjectType::Blob, &content).map_err(failed())?;
                let entry = [b"100644 noise\0".as_slice(), blob.as_bytes()].concat();
                odb.write(ObjectType::Tree, &entry)
                    .map_err(failed())?
                    .to_string()
            }
        };
        let parent = parent.map_or_else(String::new, |parent| format!("parent {parent}\n"));
        let (name, address) = IDENTITY;
        let who = format!("{name} <{address}> 0 +0000");
        let text = format!(
            "tree {tree}\n{parent}author {who}\ncommitter {who}\n\nrecover: check {} {what}\n",
            self.nonce
        );
        let id: Oid = odb
            .write(ObjectType::Commit, text.as_bytes())
            .map_err(failed())?;
        Ok(ObjectId(id.to_string()))
    }
}

/// The words of an answer that is no success.
fn said(answer: Answer<()>) -> String {
    match answer {
        Answer::Done(()) => String::new(),
        Answer::Moved => "the server has another value than the one that was pushed".to_owned(),
        Answer::Refused(said) | Answer::Away { said, .. } | Answer::Cut(said) => said,
    }
}
