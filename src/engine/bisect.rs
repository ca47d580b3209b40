//! `recover bisect`: which checkpoint of a run made a command fail.
//!
//! Each is shown in a work tree for the moment, never in the user's, and nothing is recorded.

use std::collections::BTreeMap;
use std::ffi::OsString;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::engine::base::runs::run_of;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::select;
use crate::engine::recovery;
use crate::git::Repo;
use crate::git::program::Scratch;
use crate::model::{Checkpoint, CheckpointId, Hint, ObjectId, RunLine, Selector};
use crate::policy::bisection::{Bisection, Judged, Next};
use crate::process::{Program, Show, SpawnErrorKind, Supervised};

/// What is looked for.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Where the command passes.
    pub good: Selector,
    /// Where it fails.
    pub bad: Selector,
    /// A shell line to run before the command.
    pub prepare: Option<String>,
    /// The command.
    pub command: Vec<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct TestedCheckpoint {
    pub checkpoint_id: CheckpointId,
    /// What the command ended with; 125 where it was skipped.
    pub exit_code: i32,
}

/// The attempt after which a checkpoint was taken.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct BadAttempt {
    pub iteration: u32,
    /// `null` where it was taken after none.
    pub attempt: Option<u32>,
}

/// Which checkpoint made a command fail.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Found {
    pub run: RunLine,
    /// `null` where skips or removed checkpoints leave several, and in a dry run.
    #[serde(serialize_with = "only_id")]
    #[schemars(with = "Option<CheckpointId>")]
    pub first_bad: Option<Checkpoint>,
    /// The last one before it at which the command passes.
    #[serde(serialize_with = "only_id")]
    #[schemars(with = "Option<CheckpointId>")]
    pub last_good: Option<Checkpoint>,
    /// In the order of the tests.
    pub tested: Vec<TestedCheckpoint>,
    /// The attempt after which the first bad one was taken.
    pub attempt: Option<BadAttempt>,
    /// Those that it may be, where skips leave several, oldest first.
    pub candidates: Vec<CheckpointId>,
    /// How many checkpoints are searched.
    pub checkpoints: usize,
    /// How many were removed between the last good one and the only one of `candidates`: it may be any of them.
    pub removed_between: usize,
}

#[expect(clippy::ref_option, reason = "serde asks so")]
fn only_id<S: Serializer>(
    checkpoint: &Option<Checkpoint>,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    checkpoint.as_ref().map(|one| &one.id).serialize(to)
}

/// Says of each checkpoint that was tested what came of it: how many may be left, which one, and how it was judged.
type Say<'s> = &'s dyn Fn(usize, &Checkpoint, Judged);

/// Finds it; in a dry run only between which.
///
/// # Errors
/// There are fewer than two checkpoints (4); the command fails at the good one, or passes at the bad one (13); it was ended
/// by a signal of its own (1) or cannot be started (2).
pub(crate) fn bisect(context: &Context, request: &Request, say: Say<'_>) -> Result<Found> {
    let state = recovery::load_recovered(context)?;
    let (good, bad) = select::ends(context, &state, (&request.good, &request.bad))?;
    let run = run_of(&state, &good.run)?;
    let between = |one: &&Checkpoint| good.seq <= one.seq && one.seq <= bad.seq;
    let line: Vec<&Checkpoint> = state.standing(&run.key).filter(between).collect();
    let holds = |wanted: &Checkpoint| line.iter().any(|one| one.id == wanted.id);
    if line.len() < 2 || !holds(good) || !holds(bad) {
        let message = format!(
            "No checkpoint available between {} and {}: nothing to look through",
            good.id, bad.id
        );
        let list = Hint::recover(["checkpoint", "list"]).run(&run.key);
        return Err(Error::new(ErrorKind::NoCheckpoint, message).hint(list));
    }
    let mut found = Found {
        run: (&run).into(),
        first_bad: None,
        last_good: None,
        tested: Vec::new(),
        attempt: None,
        candidates: Vec::new(),
        checkpoints: line.len(),
        removed_between: 0,
    };
    if context.dry_run() {
        return Ok(found);
    }
    let repo = context.repo()?;
    repo.sweep_scratch()?;
    let mut scratch = Scratch::new(repo)?;
    let mut search = Bisection::new(line.len());
    // What is the same is not tested twice.
    let mut known: BTreeMap<ObjectId, Ended> = BTreeMap::new();
    loop {
        let at = match search.next_step() {
            Next::Test(at) => at,
            Next::Found(first_bad) => {
                let (before, bad) = (line[first_bad - 1], line[first_bad]);
                let standing = run.line.standing();
                let between = run.removed.range(before.seq + 1..bad.seq);
                found.removed_between = between.filter(|(seq, _)| standing.holds(**seq)).count();
                found.last_good = Some(before.clone());
                if found.removed_between > 0 {
                    found.candidates = vec![bad.id.clone()];
                } else {
                    found.first_bad = Some(bad.clone());
                    found.attempt = Some(BadAttempt {
                        iteration: bad.after_iteration,
                        attempt: bad.attempt,
                    });
                }
                return Ok(found);
            }
            Next::Unknown {
                last_good,
                first_bad,
            } => {
                found.last_good = Some(line[last_good].clone());
                found.candidates = line[last_good + 1..=first_bad]
                    .iter()
                    .map(|one| one.id.clone())
                    .collect();
                return Ok(found);
            }
        };
        let checkpoint = line[at];
        let ended = if let Some(ended) = known.get(&checkpoint.tree) {
            *ended
        } else {
            let stored = repo.load_checkpoint(&checkpoint.commit)?;
            scratch.show(&stored)?;
            let ended = test(context, request, &scratch, checkpoint)?;
            found.tested.push(TestedCheckpoint {
                checkpoint_id: checkpoint.id.clone(),
                exit_code: ended.code(),
            });
            known.insert(checkpoint.tree.clone(), ended);
            ended
        };
        let judged = Judged::of(ended.code());
        refuse_unexpected(context, request, (at, line.len()), checkpoint, ended)?;
        search.judge(at, judged);
        say(search.left(), checkpoint, judged);
    }
}

/// What came of a test.
#[derive(Clone, Copy, Debug)]
enum Ended {
    /// The command ended with this.
    Command(i32),
    /// `--prepare` ended with this, so that the command was not run.
    Prepare(i32),
}

impl Ended {
    /// What it counts as: where the command was not run, as if that had said that it cannot tell.
    fn code(self) -> i32 {
        match self {
            Self::Command(code) => code,
            Self::Prepare(_) => Judged::SKIP,
        }
    }
}

/// Refuses where the ends are not what they were said to be.
fn refuse_unexpected(
    context: &Context,
    request: &Request,
    (at, count): (usize, usize),
    checkpoint: &Checkpoint,
    ended: Ended,
) -> Result<()> {
    let judged = Judged::of(ended.code());
    let (must, flag) = match at {
        0 if judged != Judged::Good => ("pass", "--good"),
        at if at + 1 == count && judged == Judged::Good => ("fail", "--bad"),
        _ => return Ok(()),
    };
    let (what, code) = match ended {
        Ended::Prepare(code) => ("--prepare fails", code),
        Ended::Command(code) => ("the command ends", code),
    };
    let needs = if at == 0 && request.prepare.is_none() {
        ", or make what it needs and no checkpoint holds with --prepare CMD"
    } else {
        ""
    };
    let message = format!(
        "{what} (exit {code}) at {}, where the command should {must}: name another one with {flag}{needs}",
        checkpoint.id
    );
    let hint = if needs.is_empty() {
        Hint::recover(["checkpoint", "list"]).run(&checkpoint.run)
    } else {
        context.rerun(&["--prepare", "make deps"])
    };
    Err(Error::new(ErrorKind::NotVerified, message).hint(hint))
}

/// Runs the command in the work tree.
fn test(
    context: &Context,
    request: &Request,
    scratch: &Scratch<'_>,
    checkpoint: &Checkpoint,
) -> Result<Ended> {
    if let Some(line) = &request.prepare {
        let code = run(context, Program::Shell(line.into()), scratch, checkpoint)?;
        if code != 0 {
            context.warn(format!("--prepare ended with {code} at {}", checkpoint.id));
            return Ok(Ended::Prepare(code));
        }
    }
    let argv = request.command.iter().map(OsString::from).collect();
    run(context, Program::Argv(argv), scratch, checkpoint).map(Ended::Command)
}

fn run(
    context: &Context,
    program: Program,
    scratch: &Scratch<'_>,
    checkpoint: &Checkpoint,
) -> Result<i32> {
    // Where the command was called, as far as that is there.
    let below = context
        .cwd()
        .strip_prefix(context.worktree())
        .unwrap_or_else(|_| "".as_ref());
    let called = scratch.path().join(below);
    let supervised = Supervised {
        env_set: vec![("RECOVER_CHECKPOINT".into(), checkpoint.id.as_str().into())],
        env_remove: Repo::misleading_variables(),
        show: Show::PassthroughStderr,
        grace: context.settings().runner.grace,
        ..Supervised::new(
            program,
            if called.is_dir() {
                called
            } else {
                scratch.path()
            },
        )
    };
    let exit = supervised
        .run(&context.interrupts, |_| Ok(()))
        .context("cannot run the command")?;
    if let Some(error) = &exit.spawn_error {
        let missing = if error.kind == SpawnErrorKind::NotFound {
            " (is it in the checkpoint, or on the path?)"
        } else {
            ""
        };
        return Err(Error::new(
            ErrorKind::Usage,
            format!("cannot start {}{missing}", error.message),
        ));
    }
    if let Some(signal) = exit.cancelled {
        return Err(Error::interrupted(
            signal,
            "interrupted; nothing was changed",
        ));
    }
    let code = exit.shell_code();
    if code < 128 {
        return Ok(code);
    }
    let message = format!(
        "the command ended with {code} at {}: that says neither good nor bad",
        checkpoint.id
    );
    Err(Error::new(ErrorKind::Failed, message))
}
