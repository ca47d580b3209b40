//! Limits and outages that hold all runs of this machine which use the same account, in files of the user's state folder.
//!
//! The run that meets one writes it, and every run checks them before each attempt. One file is one limit; a lock beside it, held by
//! the process whose attempt finds out whether it is over, ends with that process.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::agent;
use crate::durable::{FileLock, LockError, Root, Sync};
use crate::engine::base::{Context, Error, ErrorKind, Result, UserFiles};
use crate::model::agent_record::AgentKind;
use crate::model::failure::Weather;
use crate::model::{Failure, Hint, Run, Timestamp};
use crate::policy::limits::{Held, LIMIT_SCHEMA, Limit, LimitScope, RunPlace, family_of, model_of};
use crate::policy::settings::AUTO;
use crate::store::new_id;

const FOLDER: &str = "limits";
/// What accounts' checksums are keyed with.
const SALT: &str = "salt";
const LOCK: &str = "lock";
/// How long another process may take for what it writes.
const PATIENCE: Duration = Duration::from_secs(5);
/// More than a salt has, or a file that names an account, in bytes.
const MAX_SALT: u64 = 64 << 10;
const MAX_ACCOUNT_FILE: u64 = 16 << 20;

/// Variables that an agent logs in with or that name its provider; the first part of the file that names its account, with the
/// variable that moves its folder; and where in it the account is.
type Login = (
    &'static [&'static str],
    (&'static str, &'static str),
    &'static str,
);

fn login_of(kind: Option<AgentKind>) -> Login {
    match kind {
        Some(AgentKind::Claude) => (
            &[
                "ANTHROPIC_API_KEY",
                "ANTHROPIC_AUTH_TOKEN",
                "ANTHROPIC_BASE_URL",
                "CLAUDE_CODE_OAUTH_TOKEN",
                "CLAUDE_CODE_USE_BEDROCK",
                "CLAUDE_CODE_USE_VERTEX",
            ],
            ("CLAUDE_CONFIG_DIR", ".claude.json"),
            "/oauthAccount/accountUuid",
        ),
        Some(AgentKind::Codex) => (
            &["CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"],
            ("CODEX_HOME", ".codex/auth.json"),
            "/tokens/account_id",
        ),
        Some(AgentKind::Gemini) => (
            &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT"],
            ("", ".gemini/google_accounts.json"),
            "/active",
        ),
        _ => (
            &[
                "ANTHROPIC_API_KEY",
                "COPILOT_GITHUB_TOKEN",
                "GH_TOKEN",
                "GITHUB_TOKEN",
                "OPENAI_API_KEY",
                "OPENAI_BASE_URL",
                "OPENROUTER_API_KEY",
            ],
            ("", ""),
            "",
        ),
    }
}

/// The limits of this machine's user, as one run sees them.
#[derive(Clone)]
pub(crate) struct Limits {
    files: UserFiles,
    agent: String,
    kind: Option<AgentKind>,
    model: Option<String>,
    run: RunPlace,
    home: String,
    gap: Duration,
}

/// Whether an attempt may begin.
#[derive(Debug)]
pub(crate) enum Admission {
    /// It may; it finds out whether these limits are over.
    Open(Vec<Probe>),
    /// A limit holds it.
    Held(Hold),
}

/// What holds an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "limit_hold")]
pub(crate) struct Hold {
    agent: String,
    reason: Weather,
    /// `null` while another attempt finds out whether it is over.
    pub until: Option<Timestamp>,
    pub met_at: Timestamp,
    met_by: RunPlace,
    /// What is waited for, in words.
    pub text: String,
    #[serde(skip)]
    name: PathBuf,
}

impl Hold {
    fn new((name, limit): (&Path, &Limit), until: Option<Timestamp>, home: &str) -> Self {
        let what = limit.text(home);
        let end = match until {
            Some(_) if limit.through_at.is_some() => {
                "; it is over, and its runs begin in turn".to_owned()
            }
            Some(until) => format!(", until {until}"),
            None => {
                let by = limit.last.as_ref().map(|(_, by)| by.run.as_str());
                format!("; run {} tries it", by.unwrap_or_default())
            }
        };
        Self {
            agent: limit.scope.agent.clone(),
            reason: limit.reason,
            until,
            met_at: limit.met_at,
            met_by: limit.met_by.clone(),
            text: format!("waiting for {what}{end}"),
            name: name.to_owned(),
        }
    }
}

/// What holds the next attempt of `run`, without taking its turn.
pub(crate) fn hold(context: &Context, run: &Run) -> Option<Hold> {
    let is_there = files(context)?.exists();
    let limits = is_there.then(|| Limits::of(context, run)).flatten()?;
    limits.hold(context)
}

/// The right to find out whether a limit is over, which nobody else has meanwhile.
#[derive(Debug)]
pub(crate) struct Probe {
    name: PathBuf,
    met_at: Timestamp,
    _lock: FileLock,
}

impl Limits {
    /// Those that can hold `run`; `None` where its command is no known agent's, or limits are not shared.
    pub(crate) fn of(context: &Context, run: &Run) -> Option<Self> {
        let settings = &context.settings().weather;
        let files = files(context).filter(|_| settings.shared)?;
        let spec = &run.spec;
        // By whatever protocol an agent is driven, its account is the same.
        let named = spec
            .agent
            .as_deref()
            .filter(|name| *name != AgentKind::Acp.as_str());
        let kind = agent::detect(Some(&spec.command.join(" ")), named, b"");
        let other = named.filter(|name| ![AUTO, "none"].contains(name));
        let agent = kind.map(|kind| kind.as_str().to_owned());
        let agent = agent.or_else(|| other.map(str::to_owned))?;
        Some(Self {
            kind,
            model: model_of(&spec.command).or_else(|| context.env("ANTHROPIC_MODEL")),
            agent,
            run: RunPlace {
                run: run.key.run_id.to_string(),
                worktree: run.worktree.to_string(),
            },
            home: home(context),
            gap: settings.gap,
            files,
        })
    }

    /// How far apart those that waited begin.
    pub(crate) fn gap(&self) -> Duration {
        self.gap
    }

    fn salt(&self) -> io::Result<Vec<u8>> {
        self.files
            .root
            .read_at_most(&self.files.path(SALT), MAX_SALT)
    }

    fn scope(&self, context: &Context) -> io::Result<LimitScope> {
        Ok(LimitScope {
            account: checksum(&self.salt()?, &[&self.agent, &login(context, self.kind)]),
            is_default_model: self.model.is_none(),
            agent: self.agent.clone(),
            model: self.model.clone(),
        })
    }

    /// Whether an attempt may begin at `now`; `waited` for those that a limit has held until now. Where the limits cannot be read
    /// it may.
    pub(crate) fn admit(&self, context: &Context, waited: bool) -> Admission {
        // Nothing is made where no limit was ever met.
        if !self.files.exists() {
            return Admission::Open(Vec::new());
        }
        self.try_admit(context, waited).unwrap_or_else(|error| {
            context.warn(format!(
                "the limits that other runs met are not known: {error}"
            ));
            Admission::Open(Vec::new())
        })
    }

    fn try_admit(&self, context: &Context, waited: bool) -> io::Result<Admission> {
        let _lock = lock(&self.files)?;
        let now = context.clock.now();
        let mut probes = Vec::new();
        for (name, mut limit) in self.mine(context)? {
            let held = |until| Admission::Held(Hold::new((&name, &limit), until, &self.home));
            match limit.holds(&self.run, waited, (now, self.gap)) {
                Held::No => continue,
                Held::Until(until) => return Ok(held(Some(until))),
                Held::Next => {}
                Held::Probe => match self
                    .files
                    .lock(&name.with_extension("probe"), Duration::ZERO)
                {
                    Ok(lock) => probes.push(Probe {
                        name: name.clone(),
                        met_at: limit.met_at,
                        _lock: lock,
                    }),
                    Err(LockError::Held { .. }) => return Ok(held(None)),
                    Err(error) => return Err(error.into()),
                },
            }
            limit.last = Some((now, self.run.clone()));
            self.files.write(&name, &limit)?;
        }
        Ok(Admission::Open(probes))
    }

    fn hold(&self, context: &Context) -> Option<Hold> {
        let now = context.clock.now();
        let mine = self.mine(context).inspect_err(unreadable).ok()?;
        mine.iter().find_map(
            |(name, limit)| match limit.holds(&self.run, false, (now, self.gap)) {
                Held::Until(until) => Some(Hold::new((name, limit), Some(until), &self.home)),
                _ => None,
            },
        )
    }

    /// Whether what held an attempt is not as it was: removed, over, met again, or the attempt that tries it has ended.
    pub(crate) fn has_changed(&self, hold: &Hold) -> bool {
        let Ok(Some(limit)) = read(&self.files, &hold.name) else {
            return true;
        };
        let is_free = || {
            let probe = hold.name.with_extension("probe");
            let root = &self.files.root;
            FileLock::remove_if_free(root, &probe).is_ok() && matches!(root.has(&probe), Ok(false))
        };
        limit.met_at != hold.met_at
            || limit.through_at.is_some()
            || hold.until.is_none() && is_free()
    }

    /// Whether an attempt of any run had an answer since the limit was met that this run met at `since`.
    pub(crate) fn is_through(&self, context: &Context, since: Timestamp) -> bool {
        let mine = self.mine(context).unwrap_or_default();
        let mut through = mine.iter().filter_map(|(_, limit)| limit.through_at);
        through.any(|at| at > since)
    }

    /// Writes down what an attempt met: no other begins before `until`.
    pub(crate) fn met(
        &self,
        context: &Context,
        failure: &Failure,
        until: Timestamp,
    ) -> io::Result<()> {
        let _lock = lock(&self.files)?;
        let salt = self.files.path(SALT);
        if !self.files.root.has(&salt)? {
            let text = new_id()?;
            self.files.root.write(&salt, text.as_bytes(), Sync::All)?;
        }
        let now = context.clock.now();
        for (name, limit) in all(context, &self.files)? {
            if limit.is_over(now) {
                self.files.remove(&name)?;
            }
        }
        let limit = Limit {
            schema: LIMIT_SCHEMA,
            scope: LimitScope {
                model: family_of(failure),
                ..self.scope(context)?
            },
            reason: failure.weather().unwrap_or(Weather::UsageLimit),
            what: failure.in_short(),
            met_at: now,
            met_by: self.run.clone(),
            until,
            through_at: None,
            last: None,
        };
        let LimitScope { account, model, .. } = &limit.scope;
        let kind = if limit.reason == Weather::UsageLimit {
            "limit"
        } else {
            "outage"
        };
        let parts = [account, model.as_deref().unwrap_or_default(), kind];
        let name = checksum(&self.salt()?, &parts);
        self.files.write(&self.files.path(name + ".json"), &limit)
    }

    /// An answer came: the limits that the attempt tries are over.
    pub(crate) fn through(&self, now: Timestamp, probes: Vec<Probe>) -> io::Result<()> {
        for probe in probes {
            let _lock = lock(&self.files)?;
            let limit = read(&self.files, &probe.name).ok().flatten();
            let same = limit.filter(|limit| limit.met_at == probe.met_at);
            if let Some(mut limit) = same {
                limit.through_at = Some(now);
                self.files.write(&probe.name, &limit)?;
            }
        }
        Ok(())
    }

    /// Those that concern this run.
    fn mine(&self, context: &Context) -> io::Result<Vec<(PathBuf, Limit)>> {
        let mut all = all(context, &self.files)?;
        if !all.is_empty() {
            let scope = self.scope(context)?;
            all.retain(|(_, limit)| limit.concerns(&scope));
        }
        Ok(all)
    }
}

/// What an agent logs in with, which is never written, nor shown: the variables that are set, else the account that its own file names, else that file's place.
fn login(context: &Context, kind: Option<AgentKind>) -> String {
    let (variables, (moved, file), pointer) = login_of(kind);
    let set = variables
        .iter()
        .filter_map(|name| Some(format!("{name}={}", context.env(name)?)));
    let set: Vec<String> = set.collect();
    if !set.is_empty() || file.is_empty() {
        return set.join("\0");
    }
    let moved = context.env(moved).map(PathBuf::from);
    let place = match moved {
        Some(folder) => folder.join(Path::new(file).file_name().unwrap_or_default()),
        None => Path::new(&home(context)).join(file),
    };
    let (folder, name) = Root::of_file(&place);
    let read = folder.read_at_most(Path::new(name), MAX_ACCOUNT_FILE);
    let document = read
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let account = document.and_then(|document| document.pointer(pointer).cloned());
    account.map_or_else(
        || place.display().to_string(),
        |account| account.to_string(),
    )
}

fn home(context: &Context) -> String {
    context.env("HOME").unwrap_or_default()
}

fn unreadable(error: &io::Error) {
    tracing::warn!(%error, "the limits that other runs met cannot be read");
}

fn files(context: &Context) -> Option<UserFiles> {
    Some(UserFiles::new(context.user_state()?, FOLDER))
}

/// One at a time reads and writes.
fn lock(files: &UserFiles) -> io::Result<FileLock> {
    Ok(files.lock(&files.path(LOCK), PATIENCE)?)
}

/// A checksum that says nothing to who does not have the salt, which stays on this machine.
fn checksum(salt: &[u8], parts: &[&str]) -> String {
    let hash = |bytes: &[u8]| {
        let keyed = Sha256::new().chain_update((salt.len() as u64).to_be_bytes());
        keyed.chain_update(salt).chain_update(bytes).finalize()
    };
    let inner = hash(parts.join("\0").as_bytes());
    format!("{:x}", hash(&inner))[..32].to_owned()
}

/// The limit of a file; `None` where it is not there.
fn read(files: &UserFiles, path: &Path) -> io::Result<Option<Limit>> {
    let limit = files.read::<Limit>(path)?;
    if limit
        .as_ref()
        .is_some_and(|limit| limit.schema > LIMIT_SCHEMA)
    {
        return Err(io::Error::other("it was written by a newer version"));
    }
    Ok(limit)
}

/// All limits that can be believed; of the others it is said.
fn all(context: &Context, files: &UserFiles) -> io::Result<Vec<(PathBuf, Limit)>> {
    let now = context.clock.now();
    let mut all = Vec::new();
    for name in files.list()? {
        let problem = match read(files, &name) {
            Ok(None) => continue,
            Ok(Some(limit)) => match limit.problem(now) {
                None => {
                    all.push((name, limit));
                    continue;
                }
                Some(problem) => problem.to_owned(),
            },
            Err(error) => error.to_string(),
        };
        let file = files.root.path().join(&name);
        context.warn(format!(
            "a limit is ignored ({}: {problem}); recover limits --clear removes it",
            file.display()
        ));
    }
    Ok(all)
}

/// The limits that hold runs on this machine.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "limits")]
pub(crate) struct LimitList {
    pub limits: Vec<LimitLine>,
    /// Whether they were removed.
    changed: bool,
    /// How many files, those that cannot be read among them.
    #[serde(skip)]
    pub files: usize,
}

/// A limit that an attempt met.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "limit")]
pub(crate) struct LimitLine {
    pub agent: String,
    /// The beginning of a keyed checksum of what the agent logs in with.
    pub account: String,
    /// The family of models that it is about; `null`: all.
    pub model: Option<String>,
    pub reason: Weather,
    /// What it was in a word or two: `usage limit`, `529`.
    pub what: String,
    /// Whether runs wait for the time, for the attempt that tries it, or for nothing any more.
    #[schemars(extend("enum" = ["waiting", "trying", "over"]))]
    pub state: &'static str,
    /// No attempt begins before this.
    pub until: Timestamp,
    met_at: Timestamp,
    pub met_by: RunPlace,
    /// When an attempt after that first had an answer of the model.
    through_at: Option<Timestamp>,
}

/// How much of an account's checksum names it.
const SHORT: usize = 8;

impl LimitLine {
    fn new(limit: Limit, now: Timestamp) -> Self {
        Self {
            state: match limit.through_at {
                Some(_) => "over",
                None if limit.until > now => "waiting",
                None => "trying",
            },
            account: limit.scope.account.chars().take(SHORT).collect(),
            agent: limit.scope.agent,
            model: limit.scope.model,
            reason: limit.reason,
            what: limit.what,
            until: limit.until,
            met_at: limit.met_at,
            met_by: limit.met_by,
            through_at: limit.through_at,
        }
    }
}

/// The limits that were met and are not forgotten.
pub(crate) fn list(context: &Context) -> Result<LimitList> {
    let now = context.clock.now();
    let all = match files(context) {
        Some(files) => all(context, &files).context("cannot read the limits")?,
        None => Vec::new(),
    };
    let known = all.into_iter().map(|(_, limit)| limit);
    let known = known.filter(|limit| !limit.is_over(now));
    Ok(LimitList {
        limits: known.map(|limit| LimitLine::new(limit, now)).collect(),
        changed: false,
        files: 0,
    })
}

/// Removes the limits of an agent or an account, or all with what cannot be read; in a dry run only says which.
///
/// # Errors
/// There is none of that agent or account (4).
pub(crate) fn clear(context: &Context, wanted: Option<&str>) -> Result<LimitList> {
    let cleared = try_clear(context, wanted).context("cannot remove the limits")?;
    match wanted {
        Some(wanted) if cleared.limits.is_empty() => {
            let message = format!("no limit of {wanted} is known");
            Err(Error::new(ErrorKind::LimitNotFound, message).hint(Hint::recover(["limits"])))
        }
        _ => Ok(cleared),
    }
}

fn try_clear(context: &Context, wanted: Option<&str>) -> io::Result<LimitList> {
    let now = context.clock.now();
    let mut cleared = LimitList {
        limits: Vec::new(),
        changed: false,
        files: 0,
    };
    if let Some(files) = files(context).filter(UserFiles::exists) {
        let _lock = lock(&files)?;
        for name in files.list()? {
            let limit = read(&files, &name).ok().flatten();
            let is_wanted = wanted.is_none_or(|wanted| {
                let scope = limit.as_ref().map(|limit| &limit.scope);
                scope.is_some_and(|scope| {
                    scope.agent == wanted
                        || wanted.len() >= SHORT && scope.account.starts_with(wanted)
                })
            });
            if !is_wanted {
                continue;
            }
            cleared.files += 1;
            if !context.dry_run() {
                files.remove(&name)?;
                cleared.changed = true;
            }
            let line = limit.map(|limit| LimitLine::new(limit, now));
            cleared.limits.extend(line);
        }
    }
    Ok(cleared)
}
