//! Records the file, credential or variable that a permission or login failure depends on, and detects its change.
//! It is recorded when the attempt ends, and compared again whenever a user asks.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;
use sha2::{Digest as _, Sha256};

use crate::engine::base::Context;
use crate::engine::record::run_settings::folder_of;
use crate::model::attempt::{Precondition, PreconditionKind, Preconditions};
use crate::model::{Cause, Failure, Run, RunStatus};
use crate::policy::retry::{awaited, is_conditional, named_paths, reconsidered};
use crate::policy::secrets::is_secret_name;

/// Where agents and the tools that they call keep credentials, below the home folder.
const CREDENTIAL_FILES: [&str; 28] = [
    ".aws/credentials",
    ".cargo/credentials.toml",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".config/claude/.credentials.json",
    ".config/gcloud/application_default_credentials.json",
    ".config/gh/hosts.yml",
    ".config/git/credentials",
    ".config/github-copilot/apps.json",
    ".config/opencode/auth.json",
    ".copilot/config.json",
    ".docker/config.json",
    ".gemini/.env",
    ".gemini/oauth_creds.json",
    ".git-credentials",
    ".gradle/gradle.properties",
    ".kube/config",
    ".local/share/opencode/auth.json",
    ".m2/settings.xml",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".qwen/oauth_creds.json",
    ".ssh/config",
    ".ssh/id_ecdsa",
    ".ssh/id_ed25519",
    ".ssh/id_rsa",
    ".ssh/known_hosts",
];

/// The same where a variable names their folder.
const MOVED_CREDENTIAL_FILES: [(&str, &str); 3] = [
    ("CLAUDE_CONFIG_DIR", ".credentials.json"),
    ("CODEX_HOME", "auth.json"),
    ("XDG_DATA_HOME", "opencode/auth.json"),
];

/// The same below the work tree.
const PROJECT_FILES: [&str; 1] = [".env"];

/// Variables that are examined also where they are not set.
const VARIABLES: [&str; 6] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "GEMINI_API_KEY",
    "GITHUB_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "OPENAI_API_KEY",
];

/// What `failure`, with which an attempt of `run` just ended, depends on.
pub(super) fn observe(
    context: &Context,
    run: &Run,
    failure: &Failure,
) -> Option<Box<Preconditions>> {
    if !is_conditional(failure.cause) {
        return None;
    }
    let look = Look {
        context,
        worktree: &run.worktree.path(),
        salt: format!("{:032x}", fastrand::u128(..)),
    };
    let named = look.named(run, failure);
    let is_about_login = failure
        .evidence
        .iter()
        .any(|evidence| evidence.rule == "denied.credentials");
    let is_about_paths =
        failure.cause == Cause::PermissionDenied && !named.is_empty() && !is_about_login;
    let start = folder_of(context, &run.spec.dir);
    let mut paths: BTreeSet<PathBuf> = named
        .iter()
        .flat_map(|path| [path.clone(), parent_of(path)])
        .collect();
    paths.insert(start);
    let mut seen: Vec<Precondition> = paths
        .iter()
        .filter_map(|path| look.permissions_of(path))
        .collect();
    seen.push(user());
    if !is_about_paths {
        seen.extend(look.credentials());
        seen.extend(look.variables(&VARIABLES.map(str::to_owned).into()));
    }
    Some(Box::new(Preconditions {
        salt: look.salt,
        seen,
    }))
}

/// Decides anew about a run that waits for something to change which has changed: it can be resumed. Says whether it did.
pub(crate) fn reconsider(context: &Context, run: &mut Run) -> bool {
    let decided = awaited(run).and_then(|before| {
        let look = Look {
            context,
            worktree: &run.worktree.path(),
            salt: before.salt.clone(),
        };
        reconsidered(run, before, &look.again(before), context.clock.now())
    });
    let Some(decision) = decided else {
        return false;
    };
    run.decision = Some(decision);
    if run.status == RunStatus::Escalated {
        run.status = RunStatus::Paused;
    }
    true
}

struct Look<'a> {
    context: &'a Context,
    worktree: &'a Path,
    salt: String,
}

impl Look<'_> {
    /// The paths that the failure's messages name: those that are there, and for what else can only be one, the nearest
    /// folder that is.
    fn named(&self, run: &Run, failure: &Failure) -> BTreeSet<PathBuf> {
        let start = folder_of(self.context, &run.spec.dir);
        let bases = [start.as_path(), self.context.cwd(), self.worktree];
        let place = |(name, is_explicit): (&str, bool)| {
            let there = bases
                .iter()
                .map(|base| base.join(name))
                .find(|path| is_there(path));
            there.or_else(|| {
                bases[0]
                    .join(name)
                    .ancestors()
                    .find(|path| is_explicit && is_there(path))
                    .map(Path::to_owned)
            })
        };
        named_paths(failure).into_iter().filter_map(place).collect()
    }

    /// How what was examined before is now.
    fn again(&self, before: &Preconditions) -> Vec<Precondition> {
        let of_kind = |kind| before.seen.iter().filter(move |one| one.kind == kind);
        let mut seen: Vec<Precondition> = Vec::new();
        seen.extend(
            of_kind(PreconditionKind::Permissions)
                .filter_map(|one| self.permissions_of(&self.place(&one.name))),
        );
        seen.extend(of_kind(PreconditionKind::User).map(|_| user()));
        seen.extend(of_kind(PreconditionKind::Credentials).map(|one| self.file(&one.name)));
        let known: BTreeSet<String> = of_kind(PreconditionKind::Variable)
            .map(|one| one.name.clone())
            .collect();
        if !known.is_empty() {
            seen.extend(self.variables(&known));
        }
        seen
    }

    /// `None` where its name is no text.
    fn permissions_of(&self, path: &Path) -> Option<Precondition> {
        let shown = path.strip_prefix(self.worktree).unwrap_or(path).to_str()?;
        let name = if shown.is_empty() { "." } else { shown }.to_owned();
        let state = permissions(path);
        Some(precondition(PreconditionKind::Permissions, name, state))
    }

    fn credentials(&self) -> impl Iterator<Item = Precondition> {
        let of_home = CREDENTIAL_FILES.iter().map(|name| format!("~/{name}"));
        let moved = MOVED_CREDENTIAL_FILES
            .iter()
            .filter_map(|(variable, name)| {
                let folder = self.context.env(variable)?;
                Some(format!("{folder}/{name}"))
            });
        let of_project = PROJECT_FILES.iter().map(|name| (*name).to_owned());
        of_home
            .chain(moved)
            .chain(of_project)
            .map(|name| self.file(&name))
    }

    fn file(&self, name: &str) -> Precondition {
        let metadata = std::fs::metadata(self.place(name)).ok();
        let state = metadata.map(|found| {
            // Not the device: some have another number after each start of the machine.
            format!(
                "{}:{}.{:09}:{}",
                found.ino(),
                found.mtime(),
                found.mtime_nsec(),
                found.size()
            )
        });
        precondition(PreconditionKind::Credentials, name, state)
    }

    fn place(&self, name: &str) -> PathBuf {
        match (name.strip_prefix("~/"), self.context.home()) {
            (Some(name), Some(home)) => home.join(name),
            _ => self.worktree.join(name),
        }
    }

    /// The variables of these names, and those that look as if a secret were in them.
    fn variables(&self, names: &BTreeSet<String>) -> Vec<Precondition> {
        let set =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let mut all: Vec<_> = set
            .filter(|(name, value)| {
                let is_secret = || is_secret_name(name) && !Path::new(value).exists();
                !value.is_empty() && (names.contains(name) || is_secret())
            })
            .map(|(name, value)| (Some(self.checksum(&name, &value)), name))
            .collect();
        let unset = names
            .iter()
            .filter(|name| all.iter().all(|(_, known)| known != *name));
        all.extend(unset.map(|name| (None, name.clone())).collect::<Vec<_>>());
        let variable = |(state, name)| precondition(PreconditionKind::Variable, name, state);
        all.into_iter().map(variable).collect()
    }

    fn checksum(&self, name: &str, value: &OsStr) -> String {
        let parts = [self.salt.as_bytes(), name.as_bytes(), value.as_bytes()];
        let digest = parts
            .iter()
            .fold(Sha256::new(), |hash, part| {
                hash.chain_update(part).chain_update([0])
            })
            .finalize();
        // Enough to see a change, and too little to confirm a guess of a short password.
        format!("{:02x}{:02x}", digest[0], digest[1])
    }
}

/// What may not be examined is there.
fn is_there(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    }
}

/// What is made, renamed or removed in it needs its permission.
fn parent_of(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_owned()
}

/// Mode and owner of what a path leads to, and whether its file system is read-only. `None` where it is not there.
fn permissions(path: &Path) -> Option<String> {
    let found = match path.metadata().or_else(|_| path.symlink_metadata()) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Some("not to be looked at".to_owned());
        }
        Err(_) => return None,
    };
    let mut text = format!(
        "mode {:04o}, owner {}:{}",
        found.mode() & 0o7777,
        found.uid(),
        found.gid()
    );
    if rustix::fs::statvfs(path)
        .is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::RDONLY))
    {
        text.push_str(", read-only file system");
    }
    Some(text)
}

fn user() -> Precondition {
    let groups = rustix::process::getgroups().unwrap_or_default();
    let ids = [
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    ];
    let ids = ids
        .into_iter()
        .chain(groups.into_iter().map(rustix::process::Gid::as_raw));
    let state = ids.map(|id| id.to_string()).collect::<Vec<_>>().join(":");
    precondition(PreconditionKind::User, "user", Some(state))
}

fn precondition(
    kind: PreconditionKind,
    name: impl Into<String>,
    state: Option<String>,
) -> Precondition {
    let name = name.into();
    Precondition { kind, name, state }
}
