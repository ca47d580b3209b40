//! Merging commits without a work tree: `git merge-tree`, which writes objects and nothing else.

use std::collections::BTreeSet;
use std::ffi::OsString;

use super::Call;
use super::staging::{Staging, object_id};
use crate::git::base::{Error, Result, parse_oid};
use crate::model::{ObjectId, RepoPath};

impl Staging<'_> {
    /// Merges two commits, to a tree, or to the files that both changed otherwise; `base` is what both began with, where that is
    /// not their latest common one.
    pub(crate) fn merge(
        &self,
        (ours, theirs): (&ObjectId, &ObjectId),
        base: Option<&ObjectId>,
    ) -> Result<std::result::Result<ObjectId, BTreeSet<RepoPath>>> {
        let base = base.map(|base| format!("--merge-base={base}"));
        let words = [
            "merge-tree",
            "--write-tree",
            "-z",
            "--name-only",
            "--no-messages",
        ];
        let words = words.into_iter().chain(base.as_deref());
        let words: Vec<&str> = words.chain([ours.0.as_str(), theirs.0.as_str()]).collect();
        let folder = self.repo.workdir();
        let env = &self.environment(folder);
        let (code, out) = Call { folder, env }.run_until(&words, b"", 1)?;
        let mut parts = out.split(|byte| *byte == 0).filter(|part| !part.is_empty());
        let tree = object_id(parts.next().unwrap_or_default());
        Ok(match code {
            0 => Ok(tree),
            _ => Err(parts.map(RepoPath::new).collect()),
        })
    }

    /// Makes a commit with the message and the author of another.
    pub(crate) fn commit_again(
        &self,
        tree: &ObjectId,
        parent: &ObjectId,
        of: &ObjectId,
    ) -> Result<ObjectId> {
        let commit = self.repo.inner.find_commit(parse_oid(of)?);
        let commit = commit.map_err(Error::git(format!("read commit {of}")))?;
        let (author, when) = (commit.author(), commit.author().when());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let date = format!("@{} {}", when.seconds(), offset(when.offset_minutes()));
        let author: [(OsString, OsString); 3] = [
            ("GIT_AUTHOR_NAME".into(), text(author.name_bytes()).into()),
            ("GIT_AUTHOR_EMAIL".into(), text(author.email_bytes()).into()),
            ("GIT_AUTHOR_DATE".into(), date.into()),
        ];
        let folder = self.repo.workdir();
        let env: Vec<_> = self.environment(folder).into_iter().chain(author).collect();
        let mut words = vec![
            "commit-tree",
            tree.0.as_str(),
            "-p",
            parent.0.as_str(),
            "-F",
            "-",
        ];
        if self.repo.signs_commits() {
            words.push("-S");
        }
        let made = Call { folder, env: &env }.run(&words, commit.message_bytes())?;
        Ok(object_id(&made))
    }
}

fn offset(minutes: i32) -> String {
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{sign}{:02}{:02}", minutes.abs() / 60, minutes.abs() % 60)
}
