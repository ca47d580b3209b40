//! Runs `worker`.

use super::super::args::WorkerArgs;
use super::super::replies::ExitCode;
use super::super::ui::{Reply, Ui, escape};
use super::run::show;
use crate::engine::base::clock::WaitLimit;
use crate::engine::{Context, Result, isolated, run};
use crate::model::time::format_duration;
use crate::policy::report::task;

/// `recover worker`.
pub(super) fn work(context: &Context, args: &WorkerArgs, ui: &Ui) -> Result<Reply> {
    let job = isolated::worker::Job {
        file: args.tasks.clone(),
        request: run::Request {
            attempts: args.attempts,
            timeout: args.timeout,
            feedback: args.feedback.clone(),
            prompt: args.prompt.clone(),
            tasks: Some(args.tasks.clone()),
            agent: args.agent.clone(),
            yolo: args.yolo,
            command: args.command.clone(),
            ..run::Request::default()
        },
        words: words(args),
        wait: (!args.no_wait).then(|| args.wait.unwrap_or(WaitLimit::Forever)),
        show: show(ui),
    };
    let work = isolated::worker::work(context, &job)?;
    let mut text = String::new();
    for run in &work.runs {
        let host = run.host.as_deref().map(escape);
        let host = host.map_or_else(String::new, |host| format!(" ({host})"));
        text.push_str(&format!(
            "run {}: {}{host}\n",
            escape(run.run_id.as_str()),
            run.state
        ));
        for line in &run.tasks {
            text.push_str(&format!("  {}\n", task(line)));
        }
    }
    if let Some(why) = &work.stopped {
        text.push_str(&format!("Stopped: {}\n", escape(why)));
    }
    let exit = ExitCode::other(work.exit_code);
    Ok(Reply::new(work, text).exit(exit))
}

/// What `run` is called with for each run.
fn words(args: &WorkerArgs) -> Vec<String> {
    let mut words = Vec::new();
    let mut flag = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("--{name}={value}")));
    };
    flag("tasks", Some(args.tasks.display().to_string()));
    flag("attempts", args.attempts.map(|number| number.to_string()));
    flag("timeout", args.timeout.map(format_duration));
    flag("agent", args.agent.clone());
    flag("prompt", args.prompt.clone());
    for (name, command) in &args.feedback {
        flag("feedback", Some(format!("{name}={command}")));
    }
    words.extend(args.yolo.then(|| "--yolo".to_owned()));
    if !args.command.is_empty() {
        words.push("--".to_owned());
        words.extend(args.command.iter().cloned());
    }
    words
}
