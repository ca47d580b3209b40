//! What a server guarantees, found out on a reference for the moment: nothing of a run relies on a promise.
//!
//! The one that matters most is that the server compares and sets. A push of git's reads the reference first and compares by
//! itself, so that an ordinary push never shows it: here one has read, and waits in its hook until another one was faster.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use git2::{ObjectType, Oid};
use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{Answer, Missed, SCRATCH};
use super::call::Limits;
use super::transport::GitServer;
use crate::durable::temporary_prefix;
use crate::git::base::error::{At as _, Error, Result};
use crate::git::repo::repository::{IDENTITY, Repo};
use crate::model::manifest::ObjectId;

/// Where it is fetched to.
const FETCHED: &str = "refs/recover/+check";
/// Said of a push that the server takes for one that is late.
const OTHER_VALUE: &str = "the server has another value than the one that was pushed";

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
    ) -> Answer<Examined> {
        let mut trial = Trial {
            repo,
            server: self,
            limits,
            nonce,
            name: format!("{SCRATCH}{nonce}"),
            findings: Vec::new(),
        };
        trial.run(size).map_err(Missed::of_reading)?;
        let left = trial.clean_up()?;
        Ok(Examined {
            findings: trial.findings,
            left,
        })
    }
}

impl Trial<'_> {
    /// Tries one after the other; what makes the rest pointless ends it.
    ///
    /// # Errors
    /// The server cannot be reached.
    fn run(&mut self, size: u64) -> Answer<()> {
        let first = self.commit("first", None, None)?;
        let made = self.push(None, &first);
        if !self.tried("create", made, "a reference of a run can be made")? {
            return Ok(());
        }
        let is_visible = self.is_listed(&first)?;
        let detail = if is_visible {
            "what was pushed is listed and fetched at once"
        } else {
            "the server hides the reference, or another one answers than took it"
        };
        self.note("visible", Some(is_visible), true, detail);
        if !is_visible {
            return Ok(());
        }
        let (winner, loser) = (
            self.commit("winner", Some(&first), None)?,
            self.commit("loser", Some(&first), None)?,
        );
        let (late, between) = self.push_late(&first, &loser, &winner)?;
        let Some(between) = between else {
            let why = "no hook can be run in this repository's folder (noexec?)";
            self.note("compare_and_swap", None, true, why);
            self.note("fast_forward", None, true, why);
            return Ok(());
        };
        if !self.tried("fast_forward", between, "a state follows the one before")? {
            return Ok(());
        }
        let is_winner = self.is_listed(&winner)?;
        let (holds, detail) = match late {
            Ok(()) => (false, "of two pushes from one state both were taken"),
            Err(missed @ Missed::Failed(_)) => return Err(missed),
            Err(missed @ (Missed::Away { .. } | Missed::Cut(_))) if is_winner => {
                return Err(missed);
            }
            Err(_) => (is_winner, "of two pushes from one state one is refused"),
        };
        self.note("compare_and_swap", Some(holds), true, detail);
        if size > 0 {
            let large = self.commit("large", Some(&winner), Some(size))?;
            let sent = self.push(Some(&winner), &large);
            self.note_optional("size", sent, "an object of that size is taken")?;
        }
        Ok(())
    }

    /// Deletes the reference, which says whether the server does that. Its name where it stays.
    fn clean_up(&mut self) -> Answer<Option<String>> {
        let at = match self.server.list(self.repo, &self.name, self.limits) {
            Ok(listed) => listed.into_iter().next(),
            Err(failed @ Missed::Failed(_)) => return Err(failed),
            Err(_) => return Ok(Some(self.name.clone())),
        };
        let Some((_, at)) = at else {
            return Ok(None);
        };
        let deletion = (Some(&at), None);
        let server = self.server;
        let deleted = server.push(self.repo, &self.name, deletion, None, self.limits);
        let stays = deleted.is_err();
        self.note_optional("delete", deleted, "ended runs can be removed by prune")?;
        Ok(stays.then(|| self.name.clone()))
    }

    fn note(&mut self, name: &'static str, holds: Option<bool>, required: bool, detail: &str) {
        self.findings.push(Finding {
            name,
            holds,
            required,
            detail: detail.to_owned(),
        });
    }

    /// Notes something that a run needs, by what came of trying it, and returns whether the server gives it; `done` is what that
    /// means.
    ///
    /// # Errors
    /// The server cannot be reached.
    fn tried(&mut self, name: &'static str, tried: Answer<()>, done: &str) -> Answer<bool> {
        let (holds, detail) = match tried {
            Ok(()) => (true, done.to_owned()),
            Err(Missed::Moved) => (false, OTHER_VALUE.to_owned()),
            Err(Missed::Refused(said)) => (false, said),
            Err(missed) => return Err(missed),
        };
        self.note(name, Some(holds), true, &detail);
        Ok(holds)
    }

    /// Notes something that a run can do without, by what came of trying it; `done` is what that means where it worked.
    fn note_optional(&mut self, name: &'static str, tried: Answer<()>, done: &str) -> Answer<()> {
        let (holds, detail) = match tried {
            Ok(()) => (Some(true), done.to_owned()),
            Err(Missed::Refused(said)) => (Some(false), said),
            Err(Missed::Moved) => (None, OTHER_VALUE.to_owned()),
            Err(Missed::Away { said, .. } | Missed::Cut(said)) => (None, said),
            Err(failed) => return Err(failed),
        };
        self.note(name, holds, false, &detail);
        Ok(())
    }

    fn push(&self, old: Option<&ObjectId>, new: &ObjectId) -> Answer<()> {
        let change = (old, Some(new));
        let server = self.server;
        server.push(self.repo, &self.name, change, None, self.limits)
    }

    /// Whether the reference is listed with this commit, and can be fetched.
    fn is_listed(&self, commit: &ObjectId) -> Answer<bool> {
        let listed = self.server.list(self.repo, &self.name, self.limits)?;
        if listed.first().is_none_or(|(_, at)| at != commit) {
            return Ok(false);
        }
        let place = format!("{FETCHED}-{}", self.nonce);
        let pair = [(self.name.clone(), place.clone())];
        let fetched = self.server.fetch(self.repo, &pair, self.limits);
        self.repo.remove_tracking(&place)?;
        match fetched {
            Err(Missed::Moved) => Ok(false),
            fetched => fetched.map(|()| true),
        }
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
        let [hook, ready, go] = ["pre-push", "ready", "go"].map(|name| folder.path().join(name));
        // It ends by itself when nobody comes.
        let script = "#!/bin/sh\ncd \"${0%/*}\" && : > ready && n=0 && while [ ! -e go ] && [ $n -lt 1200 ]\n\
                      do sleep 0.1; n=$((n + 1)); done\n";
        fs::write(&hook, script).at(&hook)?;
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).at(&hook)?;
        let between = RefCell::new(None);
        let stopped = || {
            if between.borrow().is_none() && ready.exists() {
                *between.borrow_mut() = Some(self.push(Some(before), winner));
                // Without it the hook waits for its end.
                let _ = fs::write(&go, "");
            }
            self.limits.is_stopped()
        };
        let limits = self.limits.with(&stopped);
        let change = (Some(before), Some(loser));
        let hooks = Some(folder.path());
        let late = self
            .server
            .push(self.repo, &self.name, change, hooks, &limits);
        Ok((late, between.into_inner()))
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
