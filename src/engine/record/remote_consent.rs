//! Consent to send runs to a remote, requested once for each repository and URL with a list of what would leave.
//!
//! What git itself would send to that remote is not asked about. What it would not send are untracked files, prompts and
//! error texts.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::durable::Root;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::checkpoint::prepare;
use crate::engine::record::nested::NestedCapture;
use crate::git::remote::{Filter, Limits, Remote};
use crate::model::{Hint, ObjectId, PathReason, RunKey, State};
use crate::policy::foreign_pull_request::{event_file, foreign_pull_request};
use crate::policy::settings::FilteredFiles;
use crate::policy::text::{count, size};

/// This many of the files that would leave are named.
const NAMED: usize = 10;
/// How long it may take to find out whether anybody can read a remote.
const GLANCE: Duration = Duration::from_secs(20);
/// More than any description of an event has, in bytes.
const MAX_EVENT: u64 = 16 << 20;

/// What git itself would not send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Untracked files that would be sent, the largest first.
    pub untracked: Vec<PathReason>,
    /// Those that stay here, with the reason.
    pub withheld: Vec<PathReason>,
    /// How many prompts and error texts are recorded, and their bytes.
    pub texts: (usize, u64),
}

impl Survey {
    fn bytes(&self) -> u64 {
        self.untracked.iter().filter_map(|one| one.size).sum()
    }

    /// What would leave and what would not, for people.
    fn told(&self) -> String {
        let (texts, bytes) = self.texts;
        let mut told = format!(
            "{} ({}), prompts, commands and error texts ({} so far, {}; secrets masked)",
            count(self.untracked.len(), "untracked file"),
            size(self.bytes()),
            count(texts, "text"),
            size(bytes)
        );
        let named = |all: &[PathReason], what: fn(&PathReason) -> String| {
            let names = all.iter().take(NAMED);
            let names = names.map(|one| format!("{} ({})", one.path, what(one)));
            names.collect::<Vec<_>>().join(", ")
        };
        if !self.untracked.is_empty() {
            let largest = named(&self.untracked, |one| size(one.size.unwrap_or_default()));
            told.push_str(&format!("; the largest: {largest}"));
        }
        let filtered = Filter::count_filtered(&self.withheld);
        if filtered > 0 {
            let verb = if filtered == 1 { "stays" } else { "stay" };
            told.push_str(&format!(
                "; {} that a filter encrypts {verb} here",
                count(filtered, "file")
            ));
        }
        if !self.withheld.is_empty() {
            let stays = named(&self.withheld, |one| one.reason.clone());
            let more = self.withheld.len().saturating_sub(NAMED);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            told.push_str(&format!("; what stays here: {stays}{more}"));
        }
        told
    }
}

/// Refuses (13) where this is a job of a pull request from another repository.
pub(crate) fn refuse_fork(context: &Context) -> Result<()> {
    let env = |name: &str| context.env(name);
    let event = event_file(&env).and_then(|file| {
        let file = Path::new(&file);
        let bytes = Root::shared(file.parent()?)
            .read_at_most(file, MAX_EVENT)
            .ok()?;
        serde_json::from_slice(&bytes).ok()
    });
    let Some(from) = foreign_pull_request(&env, event.as_ref()) else {
        return Ok(());
    };
    let message = format!(
        "this job runs the code of a pull request from {from}: nothing is sent to a remote and no run is resumed, as \
        others decide what runs here. Without --remote the run stays on this machine"
    );
    Err(Error::new(ErrorKind::RemoteRefused, message))
}

/// Refuses (13) to send anything to a remote that the user has not consented to, with a list of what would leave; `--yes`
/// consents. To be called before anything is recorded, so that the same command can begin again.
///
/// Consent is remembered for this repository and this URL until `recover trust --revoke`.
pub(crate) fn require_consent(context: &Context, remote: &Remote) -> Result<()> {
    refuse_fork(context)?;
    if is_given(context, remote) {
        return Ok(());
    }
    let stopped = || context.interrupts.pending().is_some();
    let is_public = remote
        .is_public(&Limits::new(GLANCE, &stopped))?
        .unwrap_or(false);
    let public = "anybody can read it without a password, so everything sent there is public: use a private \
    repository of its own";
    if context.says_yes() {
        if is_public {
            context.warn(format!(
                "remote '{}' ({}): {public}",
                remote.name, remote.url
            ));
        }
        return give_consent(context, &remote.url);
    }
    let found = survey(context)?;
    let warning = if is_public {
        format!(". Warning: {public}")
    } else {
        String::new()
    };
    let message = format!(
        "nothing was sent to {} (remote '{}') before, and it would get what git itself would not send: {}{warning}. \
         --yes sends it, now and from now on; [remote] consent = \"{}\" in your own configuration allows it everywhere",
        remote.url,
        remote.name,
        found.told(),
        remote.url
    );
    let named = found
        .untracked
        .iter()
        .take(NAMED)
        .chain(&found.withheld)
        .cloned()
        .collect();
    let mut error = Error::new(ErrorKind::ConsentNeeded, message)
        .paths(named)
        .hint(context.rerun(&["--yes"]));
    error.url = Some(remote.url.as_str().into());
    Err(error)
}

/// Whether the user has consented to sending to a remote.
fn is_given(context: &Context, remote: &Remote) -> bool {
    let consented = context.settings().remote.consent.as_ref();
    consented.is_some_and(|url| remote.is_at(url))
        || context.trust_record().consents_to(&remote.url)
}

/// Refuses (13) to send anything now to a remote that the user has not consented to. Here `--yes` was said to something else.
pub(crate) fn require_given(context: &Context, remote: &Remote) -> Result<()> {
    if context.dry_run() {
        return Err(Error::new(
            ErrorKind::RemoteRefused,
            "nothing is sent in a dry run",
        ));
    }
    if is_given(context, remote) {
        return Ok(());
    }
    let message = format!(
        "nothing was sent to {} (remote '{}'): you have not consented to it",
        remote.url, remote.name
    );
    let hint = Hint::recover(["remote", "push", "--remote", &remote.name]);
    Err(Error::new(ErrorKind::ConsentNeeded, message).hint(hint))
}

/// Remembers that the user consents. In a dry run nothing is remembered.
pub(crate) fn give_consent(context: &Context, url: &str) -> Result<()> {
    if context.dry_run() {
        return Ok(());
    }
    let given = context.trust_record().add_consent(url, context.clock.now());
    given.map_err(|error| Error::io(format!("cannot remember that {url} may be sent to"), error))
}

/// What would leave of the work tree as it is, of the loop's memory and nested repositories, and of what is recorded.
pub(crate) fn survey(context: &Context) -> Result<Survey> {
    let settings = &context.settings().remote;
    let prepared = prepare(&context.rehearsal()?)?;
    let repo = context.repo()?;
    let mut nested = Vec::new();
    let mut inside: Vec<&NestedCapture> = prepared.nested.iter().collect();
    while let Some(one) = inside.pop() {
        nested.push((&one.whole, &one.capture));
        inside.extend(&one.inner);
    }
    let filter = Filter {
        max_object: settings.max_object,
        untracked: settings.untracked,
        // Of the work tree it is found out on the way.
        plain: withholds_filtered(context).then(BTreeSet::new),
        whole: false,
        keep_base: true,
        previous: None,
    };
    let leaving = repo.leaving_now(&prepared.capture, &prepared.memory, &nested, &filter)?;
    let (mut withheld, mut untracked) = (leaving.withheld, leaving.untracked);
    // What no checkpoint takes goes nowhere.
    withheld.extend(prepared.capture.manifest.skipped.iter().cloned());
    withheld.sort();
    untracked.sort_by(|one, other| {
        other
            .size
            .cmp(&one.size)
            .then_with(|| one.path.cmp(&other.path))
    });
    Ok(Survey {
        untracked,
        withheld,
        texts: texts(context)?,
    })
}

/// Whether files that git stores through a filter stay here.
fn withholds_filtered(context: &Context) -> bool {
    context.settings().remote.filtered == FilteredFiles::Withhold
}

/// The blobs of a run's checkpoints that git would store through a filter, encrypted perhaps, and that stay here for that;
/// `None` where the user sends them.
pub(crate) fn plain_blobs_of(
    context: &Context,
    state: &State,
    key: &RunKey,
) -> Result<Option<BTreeSet<ObjectId>>> {
    if !withholds_filtered(context) {
        return Ok(None);
    }
    let commits: Vec<&ObjectId> = state
        .checkpoints_of(key)
        .map(|checkpoint| &checkpoint.commit)
        .collect();
    Ok(Some(context.repo()?.plain_blobs(&commits)?))
}

/// How many prompts and error texts are recorded of the runs of this work tree, and their bytes.
fn texts(context: &Context) -> Result<(usize, u64)> {
    if !context.store().exists() {
        return Ok((0, 0));
    }
    let state = context.load()?.state;
    let mut sizes = Vec::new();
    for run in state.runs_of(&context.worktree_id()) {
        sizes.extend(run.spec.prompt.as_ref().map(String::len));
        let failures = run
            .attempts()
            .filter_map(|(_, attempt)| attempt.failure.as_ref());
        sizes.extend(failures.map(|failure| {
            failure.message.len() + failure.details.as_ref().map_or(0, String::len)
        }));
    }
    Ok((sizes.len(), sizes.iter().map(|size| *size as u64).sum()))
}
