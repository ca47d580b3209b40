//! Runs `run` and `resume`.

use std::io::{IsTerminal as _, Read};
use std::path::{Path, PathBuf};

use super::super::args::{ResumeArgs, RunArgs};
use super::super::live::Watch;
use super::super::render;
use super::super::replies::{ExitCode, PlanReply};
use super::super::screens::resume as resume_screen;
use super::super::screens::resume::Answer;
use super::super::ui::{Form, Reply, Ui, escape, verb};
use super::attempt::read_file;
use super::manual_fix;
use super::remote::{confirm_steal, how};
use super::runs::close_chosen;
use crate::engine::base::clock;
use crate::engine::{
    Context, ErrorKind, Result, answers, isolated, remote, resume, run, runs, status, trust,
};
use crate::model::hint::join;
use crate::model::spec::{Confine, Isolated};
use crate::model::{Hint, RunKey, RunStatus, Standing, Strategy};
use crate::policy::retry::{end_of_fix, manual_steps, way_back};
use crate::process::Show;

/// `recover run`.
pub(super) fn run(context: &mut Context, args: &RunArgs, ui: &Ui) -> Result<Reply> {
    if args.queued {
        return quietly(supervise(context, args, None, ui));
    }
    if let Some(series) = context.naming().series.clone() {
        match run::series::next(context, &series)? {
            run::series::Next::Begin(id) => {
                if context.dry_run() {
                    context.note(run::series::begins(&series, &id));
                }
                context.name_run(id);
            }
            run::series::Next::Resume(id) => {
                context.note(format!(
                    "series {series}: run {id} waits, and is resumed with what it was begun with"
                ));
                context.name_run(id);
                return Ok(resume(context, &resumed_by(args), ui)?.of("resume"));
            }
        }
    }
    if let Some(count) = args.lanes.filter(|_| args.only.is_empty()) {
        let file = args.tasks.as_deref().unwrap_or(Path::new(""));
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let wait = (!args.no_wait).then(|| args.wait.unwrap_or(clock::WaitLimit::Forever));
        let done = isolated::lanes::drive(context, file, count, wait)?;
        let exit = done.lanes.iter().filter_map(|lane| lane.exit_code).max();
        let line = |lane| lane_line(context, lane, &ui.knowing(context));
        let text = done.lanes.iter().map(line).collect::<String>();
        return Ok(Reply::new(done, text)
            .of("lanes")
            .exit(ExitCode::other(exit.unwrap_or(0))));
    }
    if !args.isolated {
        return supervise(context, args, None, ui);
    }
    let how = isolated::How {
        from: args.from.clone(),
        clean: args.clean,
        show: match show(ui) {
            Show::Live => Show::Stderr,
            show => show,
        },
    };
    if context.dry_run() {
        let (key, commit) = isolated::requirements(context, &how)?;
        context.note(format!(
            "run {key} would work in a work tree of its own, from {}",
            commit.short()
        ));
        return supervise(context, args, None, ui);
    }
    let mut begun = isolated::begin(context, &how)?;
    let own = (context.cwd().to_owned(), begun.isolated.clone());
    let done = supervise(&mut begun.context, args, Some(&own), ui);
    begun.settle(context)?;
    done
}

/// A line for one of several runs at once.
fn lane_line(context: &Context, lane: &isolated::lanes::Lane, ui: &Ui) -> String {
    let next = if lane.exit_code == Some(0) {
        "accept"
    } else {
        "status"
    };
    let next = context.placed(Hint::recover([next, lane.run_id.as_str()]));
    let next = match lane.exit_code {
        Some(_) => format!("; next: {}", ui.command(&next)),
        None => String::new(),
    };
    let what = match (lane.exit_code, &lane.said) {
        (None, _) => "would begin".to_owned(),
        (Some(0), _) => "passed".to_owned(),
        (Some(code), None) => format!("ended with exit code {code}"),
        (Some(code), Some(said)) => format!("ended with exit code {code}: {}", escape(said)),
    };
    format!(
        "run {}: {what} ({}){next}\n",
        lane.run_id,
        escape(&lane.tasks.join(", "))
    )
}

/// Supervises a run; one that has a work tree of its own reads its list of tasks where the command was called.
fn supervise(
    context: &mut Context,
    args: &RunArgs,
    own: Option<&(PathBuf, Isolated)>,
    ui: &Ui,
) -> Result<Reply> {
    let called_in = own.map_or(Path::new(""), |(folder, _)| folder);
    let mut request = run::Request {
        iterations: args.iterations,
        until: args.until.clone(),
        attempts: attempts(args.attempts, args.retries),
        timeout: args.timeout,
        idle: args.idle,
        max_repeats: args.max_repeats,
        confine: args.confine.as_deref().map(confine),
        feedback: args.feedback.clone(),
        prompt: None,
        tasks: args.tasks.as_ref().map(|file| called_in.join(file)),
        only: args.only.clone(),
        isolated: own.map(|(_, isolated)| isolated.clone()),
        reserve: args.reserve,
        agent: args.agent.clone(),
        yolo: args.yolo,
        session: args.session.mode(),
        kind: args.kind,
        on_failure: args.on_failure,
        fallback: args.fallback.clone(),
        notify: args.notify.clone(),
        approach: args.approach.clone(),
        pty: args.pty,
        command: args.command.clone(),
    };
    request.require_trust(context)?;
    request.prompt = prompt(args)?;
    if context.dry_run() {
        let plan = request.plan(context)?;
        let text = format!(
            "Would take a checkpoint of {} files ({} bytes) and supervise: {}\n",
            plan.captured.files,
            plan.captured.bytes,
            plan.spec.command.join(" ")
        );
        return Ok(Reply::new(PlanReply::of(plan), text));
    }
    let spec = request.spec(context)?;
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
    let options = run::DriveOptions {
        no_wait: args.no_wait,
        unattended: !ui.stderr_terminal,
        show,
        longest_wait: args.wait.and_then(clock::WaitLimit::longest),
        digest: digest(ui, args.raw),
    };
    let mut driven = run::run(context, spec.clone(), &options);
    while let Some(id) = run::series::taken_meanwhile(context, &driven)? {
        context.name_run(id);
        driven = run::run(context, spec.clone(), &options);
    }
    let driven = driven?;
    watch.end(context, Some(&driven.run.key));
    let exit = match driven.child_exit_code.filter(|_| args.passthrough) {
        Some(code) => ExitCode::other(code),
        None => ExitCode::of_driven(&driven),
    };
    render::note_report(&driven, ui);
    let document = answers::Ran::new(context, &driven)?;
    let text = if args.passthrough {
        String::new()
    } else {
        render::driven_text(context, &driven, ui)
            + &render::lane_text(document.lane.as_ref(), &ui.knowing(context))
    };
    Ok(Reply::new(document, text).exit(exit))
}

/// What `run` asks of a run that it resumes: it waits as a run does.
fn resumed_by(args: &RunArgs) -> ResumeArgs {
    let waits = (!args.no_wait).then(|| args.wait.unwrap_or(clock::WaitLimit::Forever));
    ResumeArgs {
        wait: waits,
        notify: args.notify.clone(),
        remote: args.remote.clone(),
        raw: args.raw,
        ..ResumeArgs::default()
    }
}

/// The parser lets no other word through.
fn confine(word: &str) -> Confine {
    match word {
        "try" => Confine::Try,
        "off" => Confine::Off,
        _ => Confine::On,
    }
}

/// Attempts, the first included; a retry is one after it.
fn attempts(attempts: Option<u32>, retries: Option<u32>) -> Option<u32> {
    attempts.or_else(|| retries.map(|retries| retries.saturating_add(1)))
}

/// Where a child's output goes: our stdout belongs to the document with `--json`.
pub(super) fn show(ui: &Ui) -> Show {
    match (ui.json, ui.quiet) {
        (_, true) => Show::Nothing,
        (true, false) => Show::Stderr,
        (false, false) => Show::Live,
    }
}

/// Whose records are shown as text: on a terminal everybody's.
fn digest(ui: &Ui, raw: bool) -> run::Digest {
    let is_read = if ui.json {
        ui.stderr_terminal
    } else {
        std::io::stdout().is_terminal()
    };
    match (raw, is_read) {
        (true, _) => run::Digest::None,
        (false, true) => run::Digest::All,
        (false, false) => run::Digest::Profile,
    }
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

/// What is done for a worker, which says itself what came of it.
fn quietly(done: Result<Reply>) -> Result<Reply> {
    match done {
        // It lies on the remote by now.
        Err(error) if matches!(error.kind, ErrorKind::Claimed | ErrorKind::AlreadyExists) => {
            Ok(Reply::text("").exit(ErrorKind::Claimed.into()))
        }
        done => done.map(Reply::without_text),
    }
}

/// `recover resume`.
pub(super) fn resume(context: &mut Context, args: &ResumeArgs, ui: &Ui) -> Result<Reply> {
    let done = resume_run(context, args, ui);
    if args.queued { quietly(done) } else { done }
}

fn resume_run(context: &mut Context, args: &ResumeArgs, ui: &Ui) -> Result<Reply> {
    if args.interrupted {
        let taken = resume::interrupted::resume(context, args.all_repos, show(ui))?;
        let text = interrupted_text(context, &taken);
        return Ok(Reply::new(taken, text).of("interrupted"));
    }
    context.require_something()?;
    if args.steal {
        confirm_steal(context, ui)?;
    }
    if let Some(home) = resume::home_of_lane(context)? {
        *context = context.at(&home)?;
        trust::refuse_to_agent(context, "resume", trust::Reach::Tree)?;
    }
    let context = &*context;
    let instructions = match args.instructions.as_deref() {
        Some("-") => Some(read_text(Path::new("-"))?),
        Some(text) => Some(text.to_owned()),
        None => None,
    };
    let mut terms = resume::Terms {
        timeout: args.timeout,
        attempts: attempts(args.attempts, args.retries),
        iterations: args.iterations,
        agent: args.agent.clone(),
        prompt: args.prompt.clone(),
        tasks: args.tasks.clone(),
        only: args.only.clone(),
        list: None,
    };
    // Who says to wait, or on which terms, has chosen.
    let asks = ui.interactive
        && args.wait.is_none()
        && terms == resume::Terms::default()
        && args.strategy.is_none()
        && !args.restart
        && !args.prepare_only
        && args.remote.is_none();
    let choice = match if asks { ask(context, ui)? } else { None } {
        Some((key, Answer::Close)) => {
            let chosen = runs::Chosen::Key(key);
            let written = remote::require_claim(context, &chosen)?;
            let reply = close_chosen(context, &chosen)?;
            remote::send_recorded(context, &written);
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
        .is_some_and(|choice| choice.strategy == Some(Strategy::ManualThenContinue))
    {
        return manual_fix::attend(context, ui);
    }
    let chosen = choice.as_ref();
    terms.timeout = terms.timeout.or(chosen.and_then(|choice| choice.timeout));
    let request = resume::ResumeRequest {
        run_id: None,
        strategy: args.strategy.or(chosen.and_then(|choice| choice.strategy)),
        from_iteration: args.from_iteration,
        no_error_context: args.no_error_context,
        instructions,
        restart: args.restart || chosen.is_some_and(|choice| choice.restart),
        session: args.session.mode(),
        prepare_only: args.prepare_only,
        wait: args.wait,
        notify: args.notify.clone(),
        feedback: run::typed_checks(context, &args.feedback)?,
        terms,
        command: args.command.clone(),
        dir: run::called_in(context),
        launch: None,
        take_over: how(args.steal, args.wait),
    };
    let options = run::DriveOptions {
        no_wait: false,
        unattended: false,
        show: show(ui),
        longest_wait: args.wait.and_then(clock::WaitLimit::longest),
        digest: digest(ui, args.raw),
    };
    let watch = Watch::start(context, ui);
    let resumed = resume::resume(context, &request, &options)?;
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
    let document = answers::ResumedRun::new(context, &resumed)?;
    let lane = document.lane.as_ref();
    if is_prompt && resumed.prompt.is_none() && lane.is_none() {
        note_what_comes(context, &resumed, ui);
    }
    let stage = lane.and_then(|lane| lane.details.stage_status.as_deref());
    let has_failed = matches!(stage, Some("failed" | "blocked"));
    let text = resumed_text(context, &resumed, has_failed, ui)
        + &plan_text(&resumed, ui)
        + &render::lane_text(lane, ui);
    Ok(Reply::new(document, text).form(form).exit(exit))
}

/// Says with what a run goes on that was prepared for its next attempt and has no prompt to print.
fn note_what_comes(context: &Context, resumed: &resume::Resumed, ui: &Ui) {
    let run = &resumed.run;
    if !resumed.changed || resumed.plan.is_some() || run.status.is_done() {
        return;
    }
    let next: &[&str] = if run.spec.command.is_empty() {
        &["attempt", "start"]
    } else {
        &["resume"]
    };
    let (next, number) = (context.hint_about(run, next), run.current_iteration);
    ui.note(&format!(
        "run {} continues with iteration {number}: {next} begins it",
        run.key
    ));
}

/// The resume screen, for a run that stands at a failure (B7).
fn ask(context: &Context, ui: &Ui) -> Result<Option<(RunKey, Answer)>> {
    match status::status(context) {
        Ok(status) => {
            let answer = resume_screen::ask(context, ui, &status)?;
            Ok(answer.map(|answer| (status.run.key, answer)))
        }
        // Whatever is wrong, the resume itself says it.
        Err(_) => Ok(None),
    }
}

/// What a dry run says that would be done.
fn plan_text(resumed: &resume::Resumed, ui: &Ui) -> String {
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
        |restore| render::restore_text(ui, restore, &Hint::recover(["undo"]), true),
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

/// A line for each run that ended with the machine.
fn interrupted_text(context: &Context, taken: &resume::interrupted::Interrupted) -> String {
    if taken.runs.is_empty() {
        return "No run ended with the machine.\n".to_owned();
    }
    let line = |one: &resume::interrupted::InterruptedRun| {
        let what = match (&one.left, one.exit_code) {
            (Some(why), _) => format!("left: {}", escape(why)),
            (None, Some(code)) => format!("resumed; ended with exit code {code}"),
            (None, None) => verb(context, "would be resumed", "resumed").to_owned(),
        };
        format!("run {} in {}: {what}\n", one.key, escape(&one.worktree))
    };
    taken.runs.iter().map(line).collect()
}

/// `has_failed`: the stage of the run's lane.
fn resumed_text(context: &Context, resumed: &resume::Resumed, has_failed: bool, ui: &Ui) -> String {
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
        .then(|| end_of_fix(run::is_unchecked(context, &resumed.run)));
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
    for action in resume::next_actions(context, resumed) {
        text.push_str(&format!("Next: {}\n", ui.command(&action)));
    }
    let back = Hint::recover(way_back(resumed.has_good_checkpoint)).run(key);
    text.push_str(&format!(
        "Roll back: {}\n",
        ui.command(&context.placed(back))
    ));
    text
}
