//! What `recover run` is called with, and the run that is made of it, with what the configuration says.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::{look_at, tasks};
use crate::config::Origin;
use crate::engine::base::{Context, Error, ErrorKind, Result, clock};
use crate::engine::record::run_settings::called_in;
use crate::engine::{checkpoint, trust};
use crate::model::agent_record::AgentKind;
use crate::model::checkpoint::CapturedTotals;
use crate::model::run::{OnFailure, SessionMode};
use crate::model::spec::{Confine, Isolated, Launch, PromptMode};
use crate::model::{CheckKind, FeedbackLoop, Hint, RunSpec};
use crate::policy::classify::guess_loop;
use crate::policy::settings::{AUTO, AgentProfile, CommandLine, Settings};
use crate::policy::text::misspelt;

/// What was typed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub iterations: Option<u32>,
    pub until: Option<String>,
    /// Per iteration, the first included.
    pub attempts: Option<u32>,
    pub timeout: Option<Duration>,
    pub idle: Option<Duration>,
    pub max_repeats: Option<u32>,
    pub confine: Option<Confine>,
    /// Names and commands of checks.
    pub feedback: Vec<(String, String)>,
    pub prompt: Option<String>,
    /// The file of a list of tasks.
    pub tasks: Option<PathBuf>,
    /// Those of its tasks that are this run's; all without any.
    pub only: Vec<String>,
    /// The work tree that was made for the run.
    pub isolated: Option<Isolated>,
    /// Percent of a limit that is left for others.
    pub reserve: Option<u8>,
    pub agent: Option<String>,
    pub yolo: bool,
    pub session: Option<SessionMode>,
    pub kind: Option<CheckKind>,
    pub on_failure: Option<OnFailure>,
    pub fallback: Option<String>,
    pub notify: Option<String>,
    pub approach: Option<String>,
    pub pty: bool,
    pub command: Vec<String>,
}

/// What a run would begin with.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct RunPlan {
    pub captured: CapturedTotals,
    pub spec: RunSpec,
}

impl Request {
    /// Refuses what would use a value of the configuration that is not trusted. For before anything is read of stdin.
    pub(crate) fn require_trust(&self, context: &Context) -> Result<()> {
        trust::require(context, |key| self.uses(context, key))
    }

    /// What a dry run answers.
    pub(crate) fn plan(&self, context: &Context) -> Result<RunPlan> {
        let spec = self.spec(context)?;
        look_at(context, &spec)?;
        let captured = checkpoint::preview(context)?;
        Ok(RunPlan { captured, spec })
    }

    pub(crate) fn spec(&self, context: &Context) -> Result<RunSpec> {
        self.require_trust(context)?;
        let settings = context.settings();
        // What the command line names starts where it was typed, what the configuration names at the project's root.
        let here = called_in(context);
        let feedback = typed_checks(context, &self.feedback)?;
        let tasks = self.tasks.as_ref();
        let tasks = tasks
            .map(|file| tasks::of_file(context, file, &self.only))
            .transpose()?;
        let iterations_total = match (self.iterations, &self.until, &tasks) {
            (.., Some(list)) => Some(list.count()),
            (Some(number), ..) => Some(number),
            (None, Some(_), None) => None,
            (None, None, None) => Some(1),
        };
        let prompt = self.prompt.clone();
        let agent = AgentChoice::of(context, self.agent.as_deref())?;
        let longest = tasks
            .as_ref()
            .and_then(|list| list.longest_prompt(prompt.as_deref()));
        let longest = longest.or_else(|| prompt.clone());
        let mut launch = None;
        let command = match (&settings.runner.command, &agent.profile) {
            _ if !self.command.is_empty() => self.command.clone(),
            (Some(command), _) => settings.runner.argv(command),
            (None, Some(_)) => {
                let skips_permissions = self.yolo || settings.skip_permissions;
                let (started, command) = agent.start(longest.as_deref(), skips_permissions)?;
                launch = Some(started);
                command
            }
            (None, None) => {
                let message = "no command given: put it after --, set [runner] command, or name an agent with --agent";
                return Err(
                    Error::new(ErrorKind::Usage, message).hint(Hint::recover(["run", "--help"]))
                );
            }
        };
        if self.yolo && launch.is_none() {
            let message = "--yolo is for an agent that --agent starts; a command of your own has its own flags";
            return Err(
                Error::new(ErrorKind::Usage, message).hint(Hint::recover(["run", "--help"]))
            );
        }
        if self.pty && launch.as_ref().is_some_and(|launch| launch.acp) {
            let message =
                "--pty is for a command on a terminal; the Agent Client Protocol has none";
            return Err(
                Error::new(ErrorKind::Usage, message).hint(Hint::recover(["run", "--help"]))
            );
        }
        let configured = if settings.run.confine {
            Confine::On
        } else {
            Confine::Off
        };
        let folder = |is_typed: bool| Some(here.clone()).filter(|_| is_typed).unwrap_or_default();
        Ok(RunSpec {
            // What a profile starts works on the whole project.
            dir: folder(!self.command.is_empty()),
            command,
            launch,
            iterations_total,
            prompt,
            tasks,
            isolated: self.isolated.clone(),
            reserve: self.reserve,
            until: self.until.clone(),
            fallback_dir: folder(self.fallback.is_some()),
            until_dir: here.clone(),
            feedback,
            timeout_ms: self.timeout.or(settings.runner.timeout).map(clock::millis),
            timeout_typed: self.timeout.is_some(),
            idle_ms: self.idle.map(clock::millis),
            max_repeats: self.max_repeats,
            confine: self.confine.unwrap_or(configured),
            attempts: self.attempts,
            kind: self.kind,
            session: self.session.unwrap_or_default(),
            agent: agent.records,
            on_failure: self.on_failure.unwrap_or(settings.run.on_failure),
            approach: self.approach.clone(),
            fallback: fallback(settings, self.fallback.as_deref()),
            series: context.naming().series.clone(),
            pty: self.pty,
            notify: self.notify.clone(),
            ..RunSpec::default()
        })
    }

    /// Whether a run that is called so would use a value of the configuration that is not trusted.
    fn uses(&self, context: &Context, key: &str) -> bool {
        let withheld = context.config().withheld();
        let of = |key: &str| {
            withheld
                .iter()
                .find(|entry| entry.key == key)
                .map(|entry| &entry.value)
        };
        let runner = &context.settings().runner;
        let has_command =
            !self.command.is_empty() || runner.command.is_some() || of("runner.command").is_some();
        let configured = of("runner.agent")
            .and_then(|name| name.as_str())
            .filter(|_| !has_command);
        let agent = self
            .agent
            .as_deref()
            .or(configured)
            .unwrap_or(&runner.agent);
        let agent = profile_of(agent);
        let is_users =
            |key: &str| matches!(context.config().origin(key), Some(Origin::User { .. }));
        let by_shell = |key: &str| of(key).is_some_and(serde_json::Value::is_string);
        match key {
            "feedback" => true,
            "runner.command" => self.command.is_empty(),
            "runner.agent" => !has_command && self.agent.is_none(),
            "runner.fallback" => self.fallback.is_none(),
            "runner.shell" => {
                !self.feedback.is_empty()
                    || self.until.is_some()
                    || self.fallback.is_some()
                    || self.command.is_empty() && by_shell("runner.command")
                    || by_shell("runner.fallback")
            }
            "skip_permissions" => {
                !has_command && agent != AUTO && agent != "none" && !self.yolo && !is_users(key)
            }
            "notify.command" => self.notify.is_none() && !is_users(key),
            "notify.on" => {
                let notifies = self.notify.is_some() || context.settings().notify.command.is_some();
                let withheld = of("notify.command").is_some() && self.notify.is_none();
                (notifies || withheld) && !is_users(key)
            }
            "notify.heartbeat.command" => !is_users(key),
            "notify.heartbeat.every" => {
                let command = "notify.heartbeat.command";
                let settings = &context.settings().notify.heartbeat;
                (settings.command.is_some() || of(command).is_some()) && !is_users(key)
            }
            _ => key
                .strip_prefix("agent.")
                .and_then(|rest| rest.strip_prefix(agent))
                .is_some_and(|rest| rest.starts_with('.')),
        }
    }
}

/// Refuses a prompt that the system takes as no argument, with room for what later attempts add to it.
fn fits(agent: &str, prompt: &str) -> Result<()> {
    const LONGEST: usize = 112 << 10;
    if prompt.len() <= LONGEST {
        return Ok(());
    }
    let message = format!(
        "the prompt has {} bytes, and {agent} gets it as an argument, which may have {LONGEST}: put the text into a file of \
         the project and name that in the prompt",
        prompt.len()
    );
    Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["run", "--help"])))
}

/// The checks that were typed.
pub(crate) fn typed_checks(
    context: &Context,
    given: &[(String, String)],
) -> Result<Vec<FeedbackLoop>> {
    let here = called_in(context);
    let mut checks: Vec<FeedbackLoop> = Vec::new();
    for (name, command) in given {
        if checks.iter().any(|known| known.name == *name) {
            return Err(Error::new(
                ErrorKind::Usage,
                format!("--feedback {name} is given twice"),
            ));
        }
        let kind = guess_loop(name, command);
        let dir = here.clone();
        checks.push(FeedbackLoop {
            name: name.clone(),
            command: command.clone(),
            kind,
            dir,
            timeout_ms: None,
        });
    }
    Ok(checks)
}

/// What the name of an agent begins with that is driven by the Agent Client Protocol.
const ACP: &str = "acp:";

/// The profile that the name of an agent is about.
pub(crate) fn profile_of(name: &str) -> &str {
    name.strip_prefix(ACP).unwrap_or(name)
}

/// The agent that is meant.
pub(crate) struct AgentChoice {
    name: String,
    /// How it is started; `None` where none is named.
    profile: Option<AgentProfile>,
    /// Whose records are read; `None` where that is found out.
    pub(crate) records: Option<String>,
}

impl AgentChoice {
    /// The one of `--agent`, else of `[runner] agent`.
    pub(crate) fn of(context: &Context, asked: Option<&str>) -> Result<Self> {
        let name = asked.unwrap_or(&context.settings().runner.agent).to_owned();
        let records = match name.as_str() {
            "none" => Some(name.clone()),
            AUTO => None,
            _ if name.starts_with(ACP) => return Self::of_protocol(context, &name),
            _ => {
                let mut profiles = context.config().agents()?;
                let Some(profile) = profiles.remove(&name) else {
                    let names: Vec<&str> = profiles.keys().map(String::as_str).collect();
                    let near = misspelt(&name, names.iter().copied());
                    let near = near.map_or_else(
                        || format!("there are {}; [agent.{name}] adds one", names.join(", ")),
                        |near| format!("did you mean '{near}'?"),
                    );
                    let message = format!("no agent is named '{name}'; {near}");
                    return Err(
                        Error::new(ErrorKind::Usage, message).hint(Hint::recover(["agents"]))
                    );
                };
                let records = profile.kind().map_or("none", AgentKind::as_str).to_owned();
                return Ok(Self {
                    name,
                    profile: Some(profile),
                    records: Some(records),
                });
            }
        };
        Ok(Self {
            name,
            profile: None,
            records,
        })
    }

    /// An agent that is driven by the Agent Client Protocol: a profile's, else a command of that name.
    fn of_protocol(context: &Context, name: &str) -> Result<Self> {
        let line = profile_of(name);
        let refused = |message: String| {
            Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["agents"])))
        };
        let profile = context.config().agents()?.remove(line);
        let profile = match (profile, shlex::split(line)) {
            (Some(profile), _) if profile.acp.is_empty() => {
                return refused(format!("{line} does not speak the Agent Client Protocol"));
            }
            (Some(profile), _) => profile,
            (None, Some(acp)) if !acp.is_empty() => AgentProfile {
                acp,
                ..AgentProfile::default()
            },
            (None, _) => return refused(format!("'{name}' names no command: {ACP}CMD")),
        };
        Ok(Self {
            name: name.to_owned(),
            profile: Some(profile),
            records: Some(AgentKind::Acp.as_str().to_owned()),
        })
    }

    /// Its command for a prompt, and how each attempt starts it.
    ///
    /// # Errors
    /// No profile is named, or the prompt is none that it takes (2).
    pub(crate) fn start(
        &self,
        prompt: Option<&str>,
        skips_permissions: bool,
    ) -> Result<(Launch, Vec<String>)> {
        let refused = |message: String| {
            Error::new(ErrorKind::Usage, message).hint(Hint::recover(["run", "--help"]))
        };
        let name = &self.name;
        let Some(profile) = &self.profile else {
            let message = format!("'{name}' is no agent that can be started");
            return Err(refused(message).hint(Hint::recover(["agents"])));
        };
        let prompt = prompt.filter(|prompt| !prompt.trim().is_empty());
        let prompt = prompt.ok_or_else(|| {
            refused(format!(
                "{name} needs a prompt: --prompt TEXT or --prompt-file F"
            ))
        })?;
        if name.starts_with(ACP) {
            let launch = Launch {
                agent: profile_of(name).to_owned(),
                yolo: skips_permissions,
                acp: true,
                ..Launch::default()
            };
            return Ok((launch, profile.acp.clone()));
        }
        if profile.prompt == PromptMode::Argument {
            fits(name, prompt)?;
        }
        let command = profile.command(skips_permissions);
        Ok((profile.launch(name, skips_permissions), command))
    }
}

/// What is run once when no retry is allowed any more: the flag's shell command, else the configured one.
fn fallback(settings: &Settings, asked: Option<&str>) -> Vec<String> {
    let asked = asked.map(|line| CommandLine::Shell(line.to_owned()));
    let command = asked.or_else(|| settings.runner.fallback.clone());
    command
        .map(|command| settings.runner.argv(&command))
        .unwrap_or_default()
}
