//! Where the processes of a confined run may write (`run --confine`), and what of it they were refused.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::model::agent_record::AgentKind;
use crate::model::failure::FailureEvidence;
use crate::model::spec::{Confine, Places};
use crate::model::{Hint, Run};
use crate::os::can_confine;
use crate::policy::refused::refused_paths;

/// What of a git folder a commit in a linked work tree writes.
const SHARED_BY_GIT: [&str; 3] = ["objects", "refs", "logs"];
/// What of a git folder runs programs, or is ours.
const NEVER_OF_GIT: [&str; 3] = ["hooks", "config", "recover"];
/// What every program writes; a whole `/dev` would have the disks in it.
const DEVICES: [&str; 10] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
    "/dev/fd",
];
/// Paths that were refused and are named.
const NAMED: usize = 8;

/// Refuses a run that is to be confined where the system cannot do that (13); where it is only to be tried, that is said.
pub(super) fn require(context: &Context, confine: Confine) -> Result<()> {
    let cannot = "this system cannot confine what a command writes (Landlock of Linux 6.2, sandbox-exec of macOS)";
    match confine {
        Confine::Try if !can_confine() => context.warn(format!("not confined: {cannot}")),
        Confine::On if !can_confine() => {
            return Err(Error::new(ErrorKind::NotConfined, cannot)
                .hint(Hint::recover(["run", "--confine=try"])));
        }
        _ => {}
    }
    Ok(())
}

/// Where an attempt of `run` may write; `None` where it is not confined. `kind` is the agent that it starts.
pub(super) fn places(context: &Context, run: &Run, kind: Option<AgentKind>) -> Option<Places> {
    if run.spec.confine == Confine::Off || !can_confine() {
        return None;
    }
    let temporary = match context.env("TMPDIR") {
        Some(folder) => vec![PathBuf::from(folder)],
        None => vec!["/tmp".into(), "/var/tmp".into()],
    };
    let named = agent_folders(context, run, kind);
    let named = named.iter().chain(&context.settings().run.confine_write);
    let mut write = vec![context.worktree().to_owned()];
    write.extend(DEVICES.map(PathBuf::from));
    write.extend(temporary);
    write.extend(named.filter_map(|place| resolved(context, place)));
    let mut never = vec![context.store().dir().to_owned()];
    if let Some(repo) = context.git() {
        let (own, common) = (repo.git_dir(), repo.common_dir());
        write.push(own.to_owned());
        if own != common {
            write.extend(SHARED_BY_GIT.map(|name| common.join(name)));
        }
        never.extend(NEVER_OF_GIT.map(|name| common.join(name)));
    }
    // What is not there cannot be named to the system; links are followed when they are.
    let real = |places: Vec<PathBuf>| {
        let real = places.iter().filter_map(|place| place.canonicalize().ok());
        real.collect()
    };
    Some(Places {
        write: real(write),
        never: real(never),
    })
}

/// Where the agent keeps its own files, as its profile names them.
fn agent_folders(context: &Context, run: &Run, kind: Option<AgentKind>) -> Vec<String> {
    let launched = run.spec.launch.as_ref().map(|launch| launch.agent.as_str());
    let name = launched.or(kind.map(AgentKind::as_str));
    let mut profiles = context.config().agents().unwrap_or_default();
    let profile = name.and_then(|name| profiles.remove(name));
    profile.map(|profile| profile.folders).unwrap_or_default()
}

/// A place as it was written: `~/…`, `$VARIABLE`, an absolute path.
fn resolved(context: &Context, place: &str) -> Option<PathBuf> {
    match (place.strip_prefix("~/"), place.strip_prefix('$')) {
        (Some(rest), _) => Some(context.home()?.join(rest)),
        (_, Some(variable)) => context.env(variable).map(PathBuf::from),
        _ => Some(PathBuf::from(place)),
    }
}

/// The paths that a confined attempt says it was refused, as people write them: those outside of its places that whoever runs
/// `recover` may write.
pub(super) fn refused(
    context: &Context,
    places: &Places,
    evidence: &FailureEvidence,
) -> Vec<String> {
    let outputs = [&evidence.stdout, &evidence.stderr];
    let mut said = outputs.into_iter().flat_map(|output| refused_paths(output));
    let is_refused = |word: &String| {
        let path = match word.strip_prefix("~/") {
            Some(rest) => context.home().map(|home| home.join(rest)),
            None => Some(context.worktree().join(word)),
        };
        path.is_some_and(|path| is_own(&path) && !places.allow(&real(&path)))
    };
    let mut refused: Vec<String> = said.by_ref().filter(is_refused).collect();
    let more = refused.len().saturating_sub(NAMED);
    refused.truncate(NAMED);
    refused.extend((more > 0).then(|| format!("{more} more")));
    refused
}

/// A path, of which the last parts need not be there.
pub(super) fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| {
        let real = above.canonicalize().ok()?;
        Some(real.join(path.strip_prefix(above).ok()?))
    });
    there.unwrap_or_else(|| path.to_owned())
}

/// Whether this process may write it, or make or remove it.
fn is_own(path: &Path) -> bool {
    let may_write = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    may_write(path) || path.parent().is_some_and(may_write)
}
