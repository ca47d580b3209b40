//! Runs `run` and `resume`.

use std::io::{IsTerminal as _, Read};
use std::path::Path;

use super::super::args::{ResumeArgs, RunArgs};
use super::super::live::Watch;
use super::super::render;
use super::super::replies::{ExitCode, PlanReply};
use super::super::screens::resume as resume_screen;
use super::super::screens::resume::Answer;
use super::super::ui::{Form, Reply, Ui, escape};
use super::attempt::read_file;
use super::manual_fix;
use super::remote::{confirm_steal, how};
use super::runs::close_chosen;
use crate::config::Origin;
use crate::engine::answers::{Ran, ResumedRun};
use crate::engine::base::clock::{self, WaitLimit};
use crate::engine::record::run_settings::{called_in, is_unchecked};
use crate::engine::remote::{require_claim, send_recorded};
use crate::engine::resume::{
    ResumeRequest, Resumed, home_of_lane, next_actions, resume as resume_run,
};
use crate::engine::run::{Digest, DriveOptions, look_at, run as start_run};
use crate::engine::runs::Chosen;
use crate::engine::status::status_of;
use crate::engine::trust::{self, Reach};
use crate::engine::{Context, Error, ErrorKind, Result, checkpoint};
use crate::model::agent_record::AgentKind;
use crate::model::decision::{Standing, Strategy};
use crate::model::feedback::FeedbackLoop;
use crate::model::hint::{Hint, join};
use crate::model::path::FolderId;
use crate::model::run::{RunKey, RunSpec, RunStatus};
use crate::model::spec::PromptMode;
use crate::policy::classify::guess_loop;
use crate::policy::retry::{end_of_fix, manual_steps, way_back};
use crate::policy::settings::{AUTO, AgentProfile, CommandLine, Settings};
use crate::policy::text::nearest;
use crate::process::Show;

/// `recover run`.
pub(super) fn run(context: &Context, args: &RunArgs, ui: &Ui) -> Result<Reply> {
    let spec = spec(context, args)?;
    if context.dry_run() {
        look_at(context, &spec)?;
        let totals = checkpoint::preview(context)?;
        let text = format!(
            "Would take a checkpoint of {} files ({} bytes) and supervise: {}\n",
            totals.files,
            totals.bytes,
            spec.command.join(" ")
        );
        let plan = render::RunPlan {
            captured: totals,
            spec: &spec,
        };
        return Ok(Reply::new(PlanReply::of(plan), text));
    }
    let show = if args.passthrough {
        Show::Passthrough
    } else {
        show(ui)
    };
    let watch = if args.passthrough {
        Watch::beside(context, ui)
    } else {
        Watch::start(context, ui)
    };
    let driven = start_run(
        context,
        spec,
        &DriveOptions {
            no_wait: args.no_wait,
            show,
            longest_wait: None,
            digest: digest(ui, args.raw),
        },
    )?;
    watch.end(context, Some(&driven.run.key));
    let exit = match driven.child_exit_code.filter(|_| args.passthrough) {
        Some(code) => ExitCode::other(code),
        None => ExitCode::of_driven(&driven),
    };
    render::note_report(&driven, ui);
    let document = Ran::new(context, &driven)?;
    let text = if args.passthrough {
        String::new()
    } else {
        render::driven_text(context, &driven, ui)
            + &render::lane_text(document.lane.as_ref(), &ui.knowing(context))
    };
    Ok(Reply::new(document, text).exit(exit))
}

/// Where a child's output goes: our stdout belongs to the document with `--json`.
fn show(ui: &Ui) -> Show {
    match (ui.json, ui.quiet) {
        (_, true) => Show::Nothing,
        (true, false) => Show::Stderr,
        (false, false) => Show::Live,
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

/// Whose records are shown as text: on a terminal everybody's.
fn digest(ui: &Ui, raw: bool) -> Digest {
    let is_read = if ui.json {
        ui.stderr_terminal
    } else {
        std::io::stdout().is_terminal()
    };
    match (raw, is_read) {
        (true, _) => Digest::None,
        (false, true) => Digest::All,
        (false, false) => Digest::Profile,
    }
}

/// Whether a run that is called so would use a value of the configuration that is not trusted.
fn uses(context: &Context, args: &RunArgs, key: &str) -> bool {
    let withheld = context.config().withheld();
    let of = |key: &str| {
        withheld
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &entry.value)
    };
    let runner = &context.settings().runner;
    let has_command =
        !args.command.is_empty() || runner.command.is_some() || of("runner.command").is_some();
    let configured = of("runner.agent")
        .and_then(|name| name.as_str())
        .filter(|_| !has_command);
    let agent = args
        .agent
        .as_deref()
        .or(configured)
        .unwrap_or(&runner.agent);
    let is_users = |key: &str| matches!(context.config().origin(key), Some(Origin::User { .. }));
    let by_shell = |key: &str| of(key).is_some_and(serde_json::Value::is_string);
    match key {
        "feedback" => true,
        "runner.command" => args.command.is_empty(),
        "runner.agent" => !has_command && args.agent.is_none(),
        "runner.fallback" => args.fallback.is_none(),
        "runner.shell" => {
            !args.feedback.is_empty()
                || args.until.is_some()
                || args.fallback.is_some()
                || args.command.is_empty() && by_shell("runner.command")
                || by_shell("runner.fallback")
        }
        "skip_permissions" => {
            !has_command && agent != AUTO && agent != "none" && !args.yolo && !is_users(key)
        }
        "notify.command" => args.notify.is_none() && !is_users(key),
        "notify.on" => {
            let notifies = args.notify.is_some() || context.settings().notify.command.is_some();
            let withheld = of("notify.command").is_some() && args.notify.is_none();
            (notifies || withheld) && !is_users(key)
        }
        _ => key
            .strip_prefix("agent.")
            .and_then(|rest| rest.strip_prefix(agent))
            .is_some_and(|rest| rest.starts_with('.')),
    }
}

fn spec(context: &Context, args: &RunArgs) -> Result<RunSpec> {
    trust::require(context, |key| uses(context, args, key))?;
    let settings = context.settings();
    // What the command line names starts where it was typed, what the configuration names at the project's root.
    let here = called_in(context);
    let feedback = typed_checks(&here, &args.feedback)?;
    let iterations_total = match (args.iterations, &args.until) {
        (Some(number), _) => Some(number),
        (None, Some(_)) => None,
        (None, None) => Some(1),
    };
    let prompt = prompt(args)?;
    let agent = AgentChoice::of(context, args.agent.as_deref())?;
    let mut launch = None;
    let command = match (&settings.runner.command, &agent.profile) {
        _ if !args.command.is_empty() => args.command.clone(),
        (Some(command), _) => settings.runner.argv(command),
        (None, Some(profile)) => {
            if prompt
                .as_deref()
                .is_none_or(|prompt| prompt.trim().is_empty())
            {
                let message = format!(
                    "{} needs a prompt: --prompt TEXT or --prompt-file F",
                    agent.name
                );
                return Err(
                    Error::new(ErrorKind::Usage, message).hint(Hint::recover(["run", "--help"]))
                );
            }
            if profile.prompt == PromptMode::Argument {
                fits(&agent.name, prompt.as_deref().unwrap_or_default())?;
            }
            let skips_permissions = args.yolo || settings.skip_permissions;
            launch = Some(profile.launch(&agent.name, skips_permissions));
            profile.command(skips_permissions)
        }
        (None, None) => {
            let message = "no command given: put it after --, set [runner] command, or name an agent with --agent";
            return Err(
                Error::new(ErrorKind::Usage, message).hint(Hint::recover(["run", "--help"]))
            );
        }
    };
    if args.yolo && launch.is_none() {
        let message =
            "--yolo is for an agent that --agent starts; a command of your own has its own flags";
        return Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["run", "--help"])));
    }
    Ok(RunSpec {
        // What a profile starts works on the whole project.
        dir: if args.command.is_empty() {
            FolderId::default()
        } else {
            here.clone()
        },
        command,
        launch,
        iterations_total,
        prompt,
        until: args.until.clone(),
        fallback_dir: if args.fallback.is_none() {
            FolderId::default()
        } else {
            here.clone()
        },
        until_dir: here,
        feedback,
        configured: None,
        timeout_ms: args.timeout.or(settings.runner.timeout).map(clock::millis),
        policy: None,
        attempts: args
            .attempts
            .or_else(|| args.retries.map(|retries| retries.saturating_add(1))),
        kind: args.kind,
        session: args.session.mode().unwrap_or_default(),
        agent: agent.records,
        on_failure: args.on_failure.unwrap_or(settings.run.on_failure),
        approach: args.approach.clone(),
        fallback: fallback(settings, args.fallback.as_deref()),
        within: None,
        pty: args.pty,
        notify: args.notify.clone(),
        masked: Vec::new(),
    })
}

/// The checks that were typed in the folder `here`.
fn typed_checks(here: &FolderId, given: &[(String, String)]) -> Result<Vec<FeedbackLoop>> {
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

/// The agent that is meant.
struct AgentChoice {
    name: String,
    /// How it is started; `None` where none is named.
    profile: Option<AgentProfile>,
    /// Whose records are read; `None` where that is found out.
    records: Option<String>,
}

impl AgentChoice {
    /// The one of `--agent`, else of `[runner] agent`.
    fn of(context: &Context, asked: Option<&str>) -> Result<Self> {
        let name = asked.unwrap_or(&context.settings().runner.agent).to_owned();
        let records = match name.as_str() {
            "none" => Some(name.clone()),
            AUTO => None,
            _ => {
                let mut profiles = context.config().agents()?;
                let Some(profile) = profiles.remove(&name) else {
                    let near = nearest(&name, profiles.keys().map(String::as_str));
                    let near = near
                        .map(|near| format!("; did you mean '{near}'?"))
                        .unwrap_or_default();
                    let message = format!("no agent is named '{name}'{near}");
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
}

/// What is run once when no retry is allowed any more: the flag's shell command, else the configured one.
fn fallback(settings: &Settings, asked: Option<&str>) -> Vec<String> {
    let asked = asked.map(|line| CommandLine::Shell(line.to_owned()));
    let command = asked.or_else(|| settings.runner.fallback.clone());
    command
        .map(|command| settings.runner.argv(&command))
        .unwrap_or_default()
}

fn prompt(args: &RunArgs) -> Result<Option<String>> {
    match (&args.prompt, &args.prompt_file) {
        (Some(text), _) => Ok(Some(text.clone())),
        (None, Some(path)) => read_text(path).map(Some),
        (None, None) => Ok(None),
    }
}

/// A file's text, or stdin's for `-`.
fn read_text(path: &Path) -> Result<String> {
    read_file(path, |mut input| {
        let mut text = String::new();
        input.read_to_string(&mut text).map(|_| text)
    })
}

/// `recover resume`.
pub(super) fn resume(context: &mut Context, args: &ResumeArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    if args.steal {
        confirm_steal(context, ui)?;
    }
    if let Some(home) = home_of_lane(context, args.run_id.as_ref())? {
        *context = context.at(&home)?;
        trust::refuse_to_agent(context, "resume", Reach::Tree)?;
    }
    let context = &*context;
    let instructions = match args.instructions.as_deref() {
        Some("-") => Some(read_text(Path::new("-"))?),
        Some(text) => Some(text.to_owned()),
        None => None,
    };
    // Who says to wait has chosen.
    let asks = ui.interactive
        && args.wait.is_none()
        && args.strategy.is_none()
        && !args.restart
        && !args.prepare_only
        && args.remote.is_none();
    let choice = match if asks { ask(context, args)? } else { None } {
        Some((key, Answer::Close)) => {
            let chosen = Chosen::Key(key);
            let written = require_claim(context, &chosen)?;
            let reply = close_chosen(context, &chosen)?;
            send_recorded(context, &written);
            return Ok(reply);
        }
        Some((_, Answer::Resume(choice))) => Some(choice),
        None => None,
    };
    let instructions = instructions.or_else(|| {
        choice
            .as_ref()
            .and_then(|choice| choice.instructions.clone())
    });
    if choice
        .as_ref()
        .is_some_and(|choice| choice.strategy == Strategy::ManualThenContinue)
        && args.run_id.is_none()
    {
        return manual_fix::attend(context, ui);
    }
    let request = ResumeRequest {
        run_id: args.run_id.clone(),
        strategy: args.strategy.or(choice.map(|choice| choice.strategy)),
        from_iteration: args.from_iteration,
        no_error_context: args.no_error_context,
        instructions,
        restart: args.restart,
        session: args.session.mode(),
        prepare_only: args.prepare_only,
        wait: args.wait,
        notify: args.notify.clone(),
        feedback: typed_checks(&called_in(context), &args.feedback)?,
        command: args.command.clone(),
        dir: called_in(context),
        take_over: how(args.steal, args.wait),
    };
    let options = DriveOptions {
        no_wait: false,
        show: show(ui),
        longest_wait: args.wait.and_then(WaitLimit::longest),
        digest: digest(ui, args.raw),
    };
    let watch = Watch::start(context, ui);
    let resumed = resume_run(context, &request, &options)?;
    watch.end(
        context,
        resumed.driven.as_ref().map(|driven| &driven.run.key),
    );
    let exit = match &resumed.driven {
        Some(driven) => ExitCode::of_driven(driven),
        None if resumed.run.status.is_done() => ExitCode::DONE,
        // A plan is one for when it is allowed.
        None if resumed.plan.is_some() && matches!(resumed.standing, Standing::Wait(_)) => {
            ExitCode::DONE
        }
        None => ExitCode::of_standing(resumed.standing),
    };
    if let Some(driven) = &resumed.driven {
        render::note_report(driven, ui);
    }
    // A prompt is for an agent to read.
    let is_prompt = resumed.driven.is_none()
        && (resumed.standing == Standing::Allowed || resumed.plan.is_some());
    let (form, ui) = if is_prompt {
        (Form::Verbatim, ui)
    } else {
        (Form::Text, &ui.knowing(context))
    };
    let document = ResumedRun::new(context, &resumed)?;
    let lane = document.lane.as_ref();
    let stage = lane.and_then(|lane| lane.details.stage_status.as_deref());
    let has_failed = matches!(stage, Some("failed" | "blocked"));
    let text = resumed_text(context, &resumed, has_failed, ui)
        + &plan_text(&resumed, ui)
        + &render::lane_text(lane, ui);
    Ok(Reply::new(document, text).form(form).exit(exit))
}

/// The resume screen, for a run that stands at a failure (B7).
fn ask(context: &Context, args: &ResumeArgs) -> Result<Option<(RunKey, Answer)>> {
    match status_of(context, args.run_id.as_ref()) {
        Ok(status) => {
            let answer = resume_screen::ask(&status, &context.interrupts)?;
            Ok(answer.map(|answer| (status.run.key, answer)))
        }
        // Whatever is wrong, the resume itself says it.
        Err(_) => Ok(None),
    }
}

/// What a dry run says that would be done.
fn plan_text(resumed: &Resumed, ui: &Ui) -> String {
    let Some(plan) = &resumed.plan else {
        return String::new();
    };
    let how = resumed.strategy.map_or("start afresh", Strategy::as_str);
    let goes_on = match plan.iteration {
        _ if plan.none_left => "no iteration is left, and nothing is run".to_owned(),
        number => format!("iteration {number}"),
    };
    let mut text = format!("Plan: {how}, {goes_on}\n");
    text.push_str(&plan.restore.as_ref().map_or_else(
        || "Files:   as they are\n".to_owned(),
        |restore| render::restore_text(ui, restore, true),
    ));
    if !plan.command.is_empty() {
        text.push_str(&format!("Command: {}\n", escape(&join(&plan.command))));
    }
    let context = if plan.error_context {
        "with the last attempt's error"
    } else {
        "without the last attempt's error"
    };
    text.push_str(&match &resumed.prompt {
        Some(prompt) => format!("Prompt:  {context}\n\n{prompt}"),
        None => "Prompt:  none\n".to_owned(),
    });
    text
}

/// `has_failed`: the stage of the run's lane.
fn resumed_text(context: &Context, resumed: &Resumed, has_failed: bool, ui: &Ui) -> String {
    let key = Some(&resumed.run.key);
    if let Some(driven) = &resumed.driven {
        return render::driven_text(context, driven, ui);
    }
    if resumed.run.status.is_done() && resumed.plan.is_some() {
        return String::new();
    }
    if resumed.run.status.is_done() && has_failed {
        return format!(
            "The iterations of run {} are done; its lane is not.\n",
            resumed.run.key
        );
    }
    if resumed.run.status == RunStatus::Accepted {
        return format!("Run {} was accepted: nothing to do.\n", resumed.run.key);
    }
    if resumed.run.status.is_done() {
        return format!("Run {} is complete: nothing to do.\n", resumed.run.key);
    }
    let mut text = match resumed.standing {
        // A plan ends with it.
        Standing::Allowed if resumed.plan.is_some() => return String::new(),
        Standing::Allowed => return resumed.prompt.clone().unwrap_or_default(),
        Standing::Wait(until) => {
            format!(
                "Not yet: the next attempt is allowed at {}.\n",
                render::moment(until, context.clock.now())
            )
        }
        Standing::Exhausted => {
            "No attempt is left. An explicit --strategy grants one more.\n".to_owned()
        }
        Standing::NeedsPerson => "A person is needed.\n".to_owned(),
    };
    let ends_by = resumed
        .run
        .is_being_fixed()
        .then(|| end_of_fix(is_unchecked(context, &resumed.run)));
    if let Some(failure) = resumed
        .run
        .failure
        .as_ref()
        .filter(|failure| !failure.recoverable)
    {
        text.push_str(&render::manual_steps_text(&manual_steps(
            failure,
            ends_by.as_deref(),
        )));
    }
    if let Some(decision) = &resumed.run.decision {
        text.push_str(&format!(
            "Decision: {}\n",
            clock::local_times(&decision.reason)
        ));
    }
    for action in next_actions(context, resumed) {
        text.push_str(&format!("Next: {}\n", ui.command(&action)));
    }
    let back = Hint::recover(way_back(resumed.has_good_checkpoint)).run(key);
    text.push_str(&format!(
        "Roll back: {}\n",
        ui.command(&context.placed(back))
    ));
    text
}
