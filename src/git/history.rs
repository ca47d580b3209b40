//! Commits, HEAD and branches: read, and moved only by compare-and-swap, with a line in git's reflogs.
//!
//! Ordinary commits are made here. Checkpoints, which are commits as well, belong in [`checkpoint`](super::checkpoint).

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

use git2::{BranchType, ObjectType, Oid, ReferenceType, Signature, Sort};

use super::base::{At as _, Error, Result, oid_of, parse_oid, present};
use super::odb::database::unread;
use super::odb::{Database, ObjectWriter};
use super::repo::locks::GitLock;
use super::repo::refs::{GIT_WAIT, remove_packed, sync_ref, write_draft};
use super::repo::{IDENTITY, Repo, WorktreeLock};
use crate::durable::{create_dir_all, give_to_sudo_caller};
use crate::model::manifest::{Head, ObjectId};

const HEAD: &str = "HEAD";

impl Repo {
    /// Has HEAD name a branch again, or a commit where it named none, with a line in git's reflog. The index and the work tree are
    /// left alone.
    pub(crate) fn name_head(
        &self,
        _lock: &WorktreeLock,
        branch: Option<&str>,
        commit: Option<&ObjectId>,
    ) -> Result<()> {
        let moved = match (branch, commit) {
            (Some(branch), _) => self.inner.set_head(branch),
            (None, Some(commit)) => self.inner.set_head_detached(parse_oid(commit)?),
            (None, None) => Ok(()),
        };
        moved.map_err(Error::git("switch HEAD back"))
    }

    /// Moves the branch that HEAD names (or a detached HEAD) to a commit, if HEAD still is what the caller saw.
    ///
    /// The index and the work tree are left alone. `to` of `None` makes the branch unborn again. Anything else than
    /// `expected` is [`Error::HeadMoved`] and nothing is changed; a reference that git holds is [`Error::Locked`]. git's own
    /// locks are held meanwhile, so that nobody moves or switches the branch; a kill leaves none behind for long.
    pub fn move_branch(
        &self,
        lock: &WorktreeLock,
        expected: &Head,
        to: Option<&ObjectId>,
        message: &str,
    ) -> Result<()> {
        let name = expected.branch.as_deref().unwrap_or(HEAD);
        let (file, _locks) = lock_branch(self, name, expected, name)?;
        let from = expected.commit.as_ref();
        if from == to {
            return Ok(());
        }
        if name != HEAD
            && self
                .inner
                .find_reference(name)
                .is_ok_and(|found| found.kind() == Some(ReferenceType::Symbolic))
        {
            return Err(Error::Unsupported(format!(
                "{name} is a symbolic reference to another branch"
            )));
        }
        if let Some(to) = to {
            let oid = parse_oid(to)?;
            Database::open(self)?.check(oid)?;
            self.inner
                .find_commit(oid)
                .map_err(|error| unread(oid, error))?;
            append_reflog(self, name, (from, Some(to)), message)?;
            if name != HEAD {
                append_reflog(self, HEAD, (from, Some(to)), message)?;
            }
            let draft = write_draft(self, lock, &format!("{to}\n"))?;
            fs::rename(&draft, &file).at(&file)?;
        } else if name == HEAD {
            return Err(Error::Unsupported(
                "a detached HEAD without a commit".to_owned(),
            ));
        } else {
            append_reflog(self, HEAD, (from, None), message)?;
            remove_packed(self, lock, &BTreeSet::from([name]))?;
            for gone in [&file, &self.common_dir().join("logs").join(name)] {
                present(gone, fs::remove_file(gone))?;
            }
        }
        sync_ref(self, name)
    }

    /// Makes HEAD name the branch of `to`, which is begun where it is not there and has a commit, or its commit itself, if HEAD
    /// still is what the caller saw. A branch of that name that is elsewhere is [`Error::HeadMoved`].
    pub(crate) fn switch(
        &self,
        lock: &WorktreeLock,
        expected: &Head,
        to: &Head,
        message: &str,
    ) -> Result<()> {
        let at = to.commit.as_ref();
        let names = match (&to.branch, at) {
            (Some(branch), _) => format!("ref: {branch}\n"),
            (None, Some(at)) => format!("{at}\n"),
            (None, None) => {
                let what = "a detached HEAD without a commit".to_owned();
                return Err(Error::Unsupported(what));
            }
        };
        let name = to.branch.as_deref().unwrap_or(HEAD);
        let (file, _locks) = lock_branch(self, name, expected, HEAD)?;
        let head = self.git_dir().join(HEAD);
        let there = self.resolve_ref(name).filter(|_| name != HEAD);
        if let Some(there) = there.as_ref().filter(|there| Some(*there) != at) {
            return Err(Error::HeadMoved {
                reference: name.to_owned(),
                expected: "nothing".to_owned(),
                found: there.to_string(),
            });
        }
        if let Some(at) = at.filter(|_| there.is_none() && name != HEAD) {
            append_reflog(self, name, (None, Some(at)), message)?;
            let draft = write_draft(self, lock, &format!("{at}\n"))?;
            fs::rename(&draft, &file).at(&file)?;
            sync_ref(self, name)?;
        }
        append_reflog(self, HEAD, (expected.commit.as_ref(), at), message)?;
        let draft = write_draft(self, lock, &names)?;
        fs::rename(&draft, &head).at(&head)?;
        sync_ref(self, HEAD)
    }

    /// Makes HEAD name the branch of `to` again, if HEAD still is what the caller saw, and deletes the one that it leaves.
    pub(crate) fn leave_branch(
        &self,
        lock: &WorktreeLock,
        expected: &Head,
        to: &Head,
        message: &str,
    ) -> Result<()> {
        self.switch(lock, expected, to, message)?;
        let Some(left) = expected
            .branch
            .as_deref()
            .filter(|left| self.resolve_ref(left) == expected.commit)
        else {
            return Ok(());
        };
        let failed = || Error::git(format!("delete {left}"));
        self.inner
            .find_reference(left)
            .and_then(|mut found| found.delete())
            .map_err(failed())
    }

    /// The commits that `head` has and `base` has not, newest first. `None` as a base means all.
    pub fn commits_between(
        &self,
        base: Option<&ObjectId>,
        head: &ObjectId,
    ) -> Result<Vec<ObjectId>> {
        let failed = || Error::git(format!("list the commits up to {head}"));
        let mut walk = self.history().revwalk().map_err(failed())?;
        walk.set_sorting(Sort::TOPOLOGICAL).map_err(failed())?;
        walk.push(parse_oid(head)?).map_err(failed())?;
        if let Some(base) = base {
            walk.hide(parse_oid(base)?).map_err(failed())?;
        }
        walk.map(|oid| oid.map(|oid| ObjectId(oid.to_string())).map_err(failed()))
            .collect()
    }

    /// Whether `ancestor` is `commit` or one of its ancestors.
    pub fn is_ancestor(&self, ancestor: &ObjectId, commit: &ObjectId) -> Result<bool> {
        let (ancestor, commit) = (parse_oid(ancestor)?, parse_oid(commit)?);
        if ancestor == commit {
            return Ok(true);
        }
        self.history()
            .graph_descendant_of(commit, ancestor)
            .map_err(Error::git("compare commits"))
    }

    /// Whether one of these commits is on a remote-tracking branch: others may have it.
    pub fn on_remote_tracking(&self, commits: &[ObjectId]) -> Result<bool> {
        let failed = || Error::git("read the remote-tracking branches");
        let commits: Vec<Oid> = commits.iter().map(parse_oid).collect::<Result<_>>()?;
        for reference in self
            .inner
            .references_glob("refs/remotes/*")
            .map_err(failed())?
        {
            let Some(tip) = reference
                .map_err(failed())?
                .resolve()
                .ok()
                .and_then(|resolved| resolved.target())
            else {
                continue;
            };
            for commit in &commits {
                if tip == *commit
                    || self
                        .history()
                        .graph_descendant_of(tip, *commit)
                        .map_err(failed())?
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The short name of a branch, none of a run's own, that has a commit; of one that ends with it where there is such a one.
    pub(crate) fn branch_with(&self, commit: &ObjectId) -> Result<Option<String>> {
        let failed = || Error::git("read the branches");
        let mut found = None;
        for branch in self
            .inner
            .branches(Some(BranchType::Local))
            .map_err(failed())?
        {
            let reference = branch.map_err(failed())?.0.into_reference();
            let (Ok(name), Some(tip)) = (
                std::str::from_utf8(reference.shorthand_bytes()),
                reference.target(),
            ) else {
                continue;
            };
            if reference
                .name_bytes()
                .starts_with(Self::branch_of_run("").as_bytes())
            {
                continue;
            }
            let tip = ObjectId(tip.to_string());
            if tip == *commit {
                return Ok(Some(name.to_owned()));
            }
            if found.is_none() && self.is_ancestor(commit, &tip)? {
                found = Some(name.to_owned());
            }
        }
        Ok(found)
    }

    /// Makes a commit with `tree` on top of `parent`; no reference is moved (see [`move_branch`](Repo::move_branch)) and no hook run.
    ///
    /// The author is the user that git is configured for, else `recover`.
    pub fn commit_on_top(
        &self,
        lock: &WorktreeLock,
        tree: &ObjectId,
        parent: Option<&ObjectId>,
        message: &str,
    ) -> Result<ObjectId> {
        let writer = ObjectWriter::new(self, lock)?;
        let id = write_commit(self, &writer, tree, parent, message)?;
        writer.publish()?;
        Ok(id)
    }

    /// A commit's parents and the first line of its message.
    pub(crate) fn about_commit(&self, commit: &ObjectId) -> Result<(Vec<ObjectId>, String)> {
        let found = self
            .history()
            .find_commit(parse_oid(commit)?)
            .map_err(Error::git(format!("read commit {commit}")))?;
        let parents = found
            .parent_ids()
            .map(|oid| ObjectId(oid.to_string()))
            .collect();
        let subject = found
            .summary_bytes()
            .map(|line| String::from_utf8_lossy(line).into_owned());
        Ok((parents, subject.unwrap_or_default()))
    }

    /// The tree of a commit.
    pub(crate) fn tree_of(&self, commit: &ObjectId) -> Result<ObjectId> {
        let found = self
            .inner
            .find_commit(parse_oid(commit)?)
            .map_err(Error::git(format!("read commit {commit}")))?;
        Ok(ObjectId(found.tree_id().to_string()))
    }

    /// Whether a commit is there.
    pub(crate) fn commit_exists(&self, commit: &ObjectId) -> bool {
        let whole = |oid: &Oid| {
            Database::open(self)
                .and_then(|database| database.check(*oid))
                .is_ok()
        };
        parse_oid(commit)
            .ok()
            .filter(whole)
            .is_some_and(|oid| self.inner.find_commit(oid).is_ok())
    }
}

/// The file of a branch or of a detached HEAD, under git's locks of it and of HEAD, which still is what the caller saw: under
/// them nobody else can move it between this and the change. `reference` is what has moved else.
fn lock_branch(
    repo: &Repo,
    name: &str,
    expected: &Head,
    reference: &str,
) -> Result<(PathBuf, [Option<GitLock>; 2])> {
    let head = repo.git_dir().join(HEAD);
    let file = if name == HEAD {
        head.clone()
    } else {
        repo.common_dir().join(name)
    };
    file.parent().map_or(Ok(()), create_dir_all).at(&file)?;
    let branch = GitLock::acquire(repo, "branch", &file, GIT_WAIT)?;
    let head = (name != HEAD).then(|| GitLock::acquire(repo, "head", &head, GIT_WAIT));
    let locks = [Some(branch), head.transpose()?];
    let now = repo.head()?;
    if now == *expected {
        return Ok((file, locks));
    }
    Err(Error::HeadMoved {
        reference: reference.to_owned(),
        expected: text(expected),
        found: text(&now),
    })
}

fn text(head: &Head) -> String {
    let commit = head
        .commit
        .as_ref()
        .map_or("no commit", |commit| commit.short());
    head.branch.as_ref().map_or_else(
        || format!("{commit} (detached)"),
        |branch| format!("{branch} at {commit}"),
    )
}

/// Writes the commit with the writer of other objects, which publishes it together with them.
pub(super) fn write_commit(
    repo: &Repo,
    writer: &ObjectWriter,
    tree: &ObjectId,
    parent: Option<&ObjectId>,
    message: &str,
) -> Result<ObjectId> {
    let failed = || Error::git("make a commit");
    let signature = repo
        .inner
        .signature()
        .or_else(|_| Signature::now(IDENTITY.0, IDENTITY.1))
        .map_err(failed())?;
    let tree = repo.inner.find_tree(parse_oid(tree)?).map_err(failed())?;
    let parent = oid_of(parent)?
        .map(|oid| repo.inner.find_commit(oid))
        .transpose()
        .map_err(failed())?;
    let parents: Vec<_> = parent.iter().collect();
    let content = repo
        .inner
        .commit_create_buffer(&signature, &signature, message, &tree, &parents)
        .map_err(failed())?;
    Ok(ObjectId(
        writer.write(ObjectType::Commit, &content)?.to_string(),
    ))
}

/// What represents no commit.
const NONE: &str = "0000000000000000000000000000000000000000";

/// Appends to the log of HEAD or of a branch, unless the repository keeps none.
fn append_reflog(
    repo: &Repo,
    name: &str,
    (from, to): (Option<&ObjectId>, Option<&ObjectId>),
    message: &str,
) -> Result<()> {
    let base = if name == "HEAD" {
        repo.git_dir()
    } else {
        repo.common_dir()
    };
    let path = base.join("logs").join(name);
    // Unset, it means yes where there is a work tree; `always` is no boolean.
    let wanted = repo
        .config()?
        .get_bool("core.logallrefupdates")
        .unwrap_or(true);
    if !wanted && !path.exists() {
        return Ok(());
    }
    path.parent().map_or(Ok(()), create_dir_all).at(&path)?;
    let id = |commit: Option<&ObjectId>| commit.map_or(NONE, |commit| commit.0.as_str()).to_owned();
    let now = git2::Signature::now(IDENTITY.0, IDENTITY.1)
        .map_err(Error::git("read the clock"))?
        .when();
    let message = message.replace(['\n', '\r'], " ");
    let line = format!(
        "{} {} {} <{}> {} +0000\t{message}\n",
        id(from),
        id(to),
        IDENTITY.0,
        IDENTITY.1,
        now.seconds()
    );
    let is_new = !path.exists();
    let append = || {
        let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
        if is_new {
            give_to_sudo_caller(&path)?;
        }
        file.write_all(line.as_bytes())
    };
    append().at(&path)
}
