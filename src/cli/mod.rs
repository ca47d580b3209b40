//! The command line: parses the arguments, runs one command of the engine, prints its answer and ends with its exit code.
//! Only what prints, prompts or parses belongs here.

pub(crate) mod args;
mod commands;
mod completion;
mod generate;
mod keys;
mod live;
mod render;
mod replies;
pub(crate) mod schema;
mod screens;
mod setup;
mod terminal_text;
mod ui;
mod usage;
mod warned;

use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::process::ExitCode as ProcessExitCode;

use args::{Cli, Command, ForgetArgs, GlobalArgs, HookArgs, HookCommand, expand_aliases, help};
use clap::{ArgMatches, CommandFactory, FromArgMatches, error::ErrorKind};
use replies::{ExitCode, NothingReply};
use setup::{context, setup};
use ui::{Reply, Ui};

use crate::engine;
use crate::engine::base::context;
use crate::engine::{Context, Result, forget, trust};
use crate::policy::secrets::Fingerprints;
use crate::policy::settings::RedactSettings;
use crate::process::{
    CONFINED, DETACHED, HELPER, WATCHDOG, exec_confined, exec_on_terminal, run_as_child,
    run_detached, run_watchdog, survive_file_size_limit,
};

pub use generate::command;

/// Parses the arguments, runs the command, prints its answer.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ProcessExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    if args.get(1).is_some_and(|first| first == HELPER) {
        return ProcessExitCode::from(exec_on_terminal(&args[2..]));
    }
    if args.get(1).is_some_and(|first| first == CONFINED) {
        return ProcessExitCode::from(exec_confined(&args[2..]));
    }
    if args.get(1).is_some_and(|first| first == DETACHED) {
        let settings = args
            .get(2)
            .and_then(|text| serde_json::from_str(text.to_str()?).ok());
        context::mask_secrets(&settings.unwrap_or_default(), Fingerprints::default());
        return ProcessExitCode::from(run_detached(args.get(3..).unwrap_or_default()));
    }
    if args.get(1).is_some_and(|first| first == WATCHDOG) {
        return ProcessExitCode::from(run_watchdog(&args[2..]));
    }
    if std::process::id() == 1
        && let Ok(code) = run_as_child(&args)
    {
        return ProcessExitCode::from(code);
    }
    survive_file_size_limit();
    match completion::answer(&args) {
        Ok(false) => {}
        Ok(true) => return ProcessExitCode::SUCCESS,
        Err(error) => error.exit(),
    }
    // Those of the configuration too, once it is read.
    context::mask_secrets(&RedactSettings::default(), Fingerprints::default());
    let args = expand_aliases(args);
    let parsed = parse(&args).or_else(|error| match error.kind() {
        ErrorKind::DisplayVersion => Err(error),
        _ => parse_with_help(&args),
    });
    let (cli, name) = match parsed {
        Ok(parsed) => parsed,
        Err(mut error) => {
            if error.use_stderr() {
                mask_configured(&args);
            }
            let exit = usage::answer(&args, &mut error);
            // From a hook, 2 would stop the agent.
            let exit = if exit == ExitCode::USAGE && usage::command_of(&args) == "hook run" {
                ExitCode::FAILED
            } else {
                exit
            };
            return ProcessExitCode::from(exit.number());
        }
    };
    start_tracing(&cli.global);
    let ui = Ui::new(&cli.global);
    let caught =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| dispatch(&cli, &name, &ui)));
    let exit = caught.unwrap_or_else(|_| {
        tracing::error!("this is a bug in recover; what it says above helps to find it");
        ExitCode::BUG
    });
    ProcessExitCode::from(exit.number())
}

/// Has masked what the configuration names, where it can be read: wrong arguments are shown too.
fn mask_configured(args: &[OsString]) {
    let own = args.split(|arg| arg == "--").next().unwrap_or_default();
    let named = |(flag, joined): (&str, &str)| {
        let is_named =
            |arg: &&OsString| *arg == flag || arg.as_encoded_bytes().starts_with(joined.as_bytes());
        let at = own.iter().rposition(|arg| is_named(&arg))?;
        let value = if own[at] == flag {
            Some(own.get(at + 1)?.clone())
        } else {
            None
        };
        Some([Some(own[at].clone()), value].into_iter().flatten())
    };
    let places = [("-C", "-C"), ("--state-dir", "--state-dir=")]
        .into_iter()
        .filter_map(named)
        .flatten();
    let words = ["recover", "config"]
        .map(OsString::from)
        .into_iter()
        .chain(places);
    if let Ok((cli, _)) = parse(&words.collect::<Vec<_>>()) {
        // Whatever is wrong with it, the arguments are wrong as well, and that is said.
        let _ = context(&cli.global, cli.command.as_ref());
    }
}

/// What the arguments say, and the name of the command in documents: the words that call it.
type Parsed = clap::error::Result<(Cli, String)>;

fn parse(args: &[OsString]) -> Parsed {
    // To take the tree of arguments apart at the end is a quarter of the work of parsing with it.
    let mut command = ManuallyDrop::new(Cli::command());
    parsed(command.try_get_matches_from_mut(args)?)
}

fn parsed(mut matches: ArgMatches) -> Parsed {
    let mut names = Vec::new();
    let mut at = &matches;
    while let Some((name, below)) = at.subcommand() {
        names.push(name);
        at = below;
    }
    let name = names.join(" ");
    let (named_runs, remote) = (given(at, "run_id"), given(at, "remote").pop());
    let mut cli = Cli::from_arg_matches_mut(&mut matches)?;
    cli.global.named_runs = named_runs;
    cli.global.remote = remote;
    refuse_two_runs(&cli)?;
    Ok((cli, name))
}

/// Returns what a command was given of the argument with this id, where it has one.
fn given(at: &ArgMatches, id: &str) -> Vec<String> {
    let given = at.try_get_many::<String>(id).ok().flatten();
    given.into_iter().flatten().cloned().collect()
}

/// Refuses a run that is named twice, and not the same, or beside all.
fn refuse_two_runs(cli: &Cli) -> clap::error::Result<()> {
    let is_named = cli.global.run.is_some() || cli.global.series.is_some();
    if is_named
        && matches!(
            &cli.command,
            Some(Command::Forget(ForgetArgs { all: true, .. }))
        )
    {
        let message = "forget --all removes every run: leave out --run and --series";
        return Err(Cli::command().error(ErrorKind::ArgumentConflict, message));
    }
    let named = &cli.global.named_runs;
    let Some(first) = named.first() else {
        return Ok(());
    };
    let (flag, other) = match (&cli.global.run, &cli.global.series) {
        (Some(run), _) if !named.contains(run) => ("--run", run),
        (_, Some(series)) => ("--series", series),
        _ => return Ok(()),
    };
    let message =
        format!("'{first}' and {flag} {other} name different runs: leave one of them out");
    Err(Cli::command().error(ErrorKind::ArgumentConflict, message))
}

/// The same with what help and errors show: groups of commands, examples.
fn parse_with_help(args: &[OsString]) -> Parsed {
    let name = args
        .first()
        .and_then(|path| Path::new(path).file_name()?.to_str())
        .unwrap_or("recover");
    parsed(help::for_people(name).try_get_matches_from(args)?)
}

fn dispatch(cli: &Cli, name: &str, ui: &Ui) -> ExitCode {
    let Some(command) = &cli.command else {
        return bare(cli, ui);
    };
    if let Command::Hook(HookArgs {
        command: HookCommand::Run(args),
    }) = command
    {
        return commands::run_hook(&cli.global, args, |cwd| setup(&cli.global, None, cwd), ui);
    }
    let (reply, told) = match commands::without_context(command, &cli.global) {
        Some(reply) => (reply, ui.clone()),
        None => run(&cli.global, Some(command), name, ui),
    };
    match reply {
        Ok(reply) => reply.map_or(ExitCode::DONE, |reply| ui.answer(name, reply)),
        Err(error) => told.error(name, &error),
    }
}

/// Runs a command, without one `status` where anything is recorded. Also returns the terminal that an error is printed on.
fn run(
    global: &GlobalArgs,
    command: Option<&Command>,
    name: &str,
    ui: &Ui,
) -> (Result<Option<Reply>>, Ui) {
    let mut told = ui.clone();
    let reply = settled(global, command).and_then(|mut context| {
        if !matches!(command, Some(Command::Trust(_))) {
            context.warn_of_others();
        }
        let ui = &ui.clone().colored(context.settings().ui.color);
        let done = match command {
            Some(command) => {
                let refuse =
                    |context: &_| trust::refuse_to_agent(context, name, commands::reach(command));
                refuse(&context)
                    .and_then(|()| commands::go_there(command, &mut context))
                    .and_then(|()| refuse(&context))
                    .and_then(|()| execute(command, &mut context, ui))
                    .map(Some)
            }
            None => commands::overview(&context, ui),
        };
        if done.is_err() {
            context
                .progress
                .warnings()
                .into_iter()
                .for_each(warned::note);
            told = told.knowing(&context);
        }
        let done = done.map_err(|error| context.locate(error));
        let reads = |command| commands::has(command, commands::Property::Reads);
        let repository = if command.is_none_or(reads) {
            context.repository_state().ok()
        } else {
            None
        };
        context.leave();
        let done = done?.map(|reply| {
            reply
                .repository(repository)
                .warned(warned::with_others(context.progress.warnings()))
        });
        Ok(match context.progress.stopped_late() {
            Some(signal) => done.map(|reply| reply.exit(ExitCode::other(signal.exit_code()))),
            None => done,
        })
    });
    (reply, told)
}

/// Runs a command. One that would start what the user does not trust yet, or send where nothing was sent before, asks for it
/// on a terminal, and begins again.
fn execute(command: &Command, context: &mut Context, ui: &Ui) -> Result<Reply> {
    match commands::execute(command, context, ui) {
        Err(error) if error.kind == engine::ErrorKind::NotTrusted && ui.interactive => {
            if !commands::ask_for_trust(context, ui)? {
                return Err(error);
            }
            *context = context.trusting()?;
            commands::execute(command, context, ui)
        }
        Err(error) if error.kind == engine::ErrorKind::ConsentNeeded && ui.interactive => {
            commands::ask_for_consent(context, ui, error)?;
            commands::execute(command, context, ui)
        }
        done => done,
    }
}

/// The context of a command, once what a `forget --all` that was cut off had begun is finished.
fn settled(global: &GlobalArgs, command: Option<&Command>) -> Result<Context> {
    let found = context(global, command)?;
    if !forget::finish(&found)? {
        return Ok(found);
    }
    let found = context(global, command)?;
    found.note("recover forget --all was interrupted: it is finished now".to_owned());
    Ok(found)
}

/// `recover` alone: where the run stands, or how to begin.
fn bare(cli: &Cli, ui: &Ui) -> ExitCode {
    let (status, told) = run(&cli.global, None, "status", ui);
    match status {
        Ok(Some(reply)) => ui.answer("status", reply),
        Err(error) if error.kind != engine::ErrorKind::RunNotFound => told.error("status", &error),
        Err(_) => {
            let text = "No run is open here. recover runs --all lists them all, recover undo reverts what was done last.\n";
            ui.answer("recover", Reply::new(NothingReply { run: () }, text))
        }
        Ok(None) => {
            let text = "Nothing has been recorded here yet. To begin:\n\n  \
                        recover run --feedback test='make test' -- CMD   supervise a command\n  \
                        recover checkpoint create                        save the work tree in a checkpoint\n  \
                        recover init                                     write a configuration\n  \
                        recover --help                                   everything else\n";
            ui.answer("recover", Reply::new(NothingReply { run: () }, text))
        }
    }
}

fn start_tracing(global: &GlobalArgs) {
    use tracing_subscriber::filter::LevelFilter;
    use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
    use tracing_subscriber::util::SubscriberInitExt as _;
    use tracing_subscriber::{EnvFilter, fmt, registry};
    let default = match (global.quiet, global.verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "info",
        (false, 2) => "debug",
        (false, _) => "trace",
    };
    let filter = EnvFilter::try_from_env("RECOVER_LOG")
        .unwrap_or_else(|_| EnvFilter::new(format!("recover={default}")));
    let printed = fmt::layer()
        .with_writer(crate::process::Stderr::default)
        .event_format(warned::AsLine::new())
        // It would be reported on stderr, which may be what fails.
        .log_internal_errors(false)
        .with_filter(filter);
    let subscriber = registry()
        .with(printed)
        .with(warned::Collector.with_filter(LevelFilter::WARN));
    // A second start in one process (tests) keeps the first subscriber.
    let _ = subscriber.try_init();
}
