//! The resume screen (B7): what failed, the options with the recommended one marked, additional instructions, cancel.
//!
//! Questions go to stderr, so that stdout stays the answer's; nothing is asked unless both ends are a terminal.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::Duration;

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use super::super::render::{date_time, failure_lines};
use super::super::ui::Ui;
use super::{List, Picked, Talk, nothing_changed};
use crate::engine::{Context, Error, Result, status};
use crate::model::decision::Standing;
use crate::model::{Failure, Hint, Strategy, Timestamp};
use crate::policy::retry::{OptionCode, OtherWay, ResumeOption};
use crate::policy::secrets::redact;
use crate::process::Interrupts;

/// What a person chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The strategy; `None` for a fresh start, and where the policy's is as good.
    pub strategy: Option<Strategy>,
    /// Whether it starts afresh.
    pub restart: bool,
    /// A time limit for the attempts from now on.
    pub timeout: Option<Duration>,
    /// More for the prompt.
    pub instructions: Option<String>,
}

/// The answer to the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Take the run up so.
    Resume(Choice),
    /// Close the run.
    Close,
}

/// Shows the screen and takes the answers; `None` where there is nothing to choose.
pub(crate) fn ask(context: &Context, ui: &Ui, status: &status::Status) -> Result<Option<Answer>> {
    let Some(failure) = status
        .run
        .failure
        .as_ref()
        .filter(|_| !status.options.is_empty())
    else {
        return Ok(None);
    };
    let ui = &ui.knowing(context);
    let talk = Talk::begin(context, ui)?;
    for (number, line) in shown(status, failure, context.clock.now())
        .lines()
        .enumerate()
    {
        if number == 0 {
            talk.title(line);
        } else {
            talk.ask(line);
        }
    }
    let rows = rows(status);
    let mut at = status
        .options
        .iter()
        .position(|option| option.recommended)
        .unwrap_or(0);
    let help = "arrows or j/k, Enter takes it, c closes the run, q leaves";
    let chosen = loop {
        match List::new(&talk, &rows, &['c'], help, at).pick()? {
            Picked::Asked(..) => return Ok(Some(Answer::Close)),
            Picked::Item(picked) => at = picked,
        }
        let option = &status.options[at];
        talk.say(&option.description);
        match not_now(status, option) {
            Some(why) => talk.ask(&why),
            None => break option,
        }
    };
    // A line is typed, and seen while it is.
    drop(talk);
    let interrupts = &context.interrupts;
    let mut input = BufReader::new(Typed { interrupts });
    let answer = instructed(chosen, &mut input, &mut io::stderr());
    match interrupts.pending() {
        Some(signal) => Err(nothing_changed(signal.exit_code())),
        None => answer.map(Some),
    }
}

/// What is typed on stdin. A signal is its end.
struct Typed<'a> {
    interrupts: &'a Interrupts,
}

impl Read for Typed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let stdin = io::stdin();
        let glance = Timespec {
            tv_sec: 0,
            tv_nsec: 100_000_000,
        };
        while self.interrupts.pending().is_none() {
            match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&glance)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => match rustix::io::read(&stdin, &mut *buffer) {
                    Err(Errno::INTR) => {}
                    read => return Ok(read?),
                },
                Err(error) => return Err(error.into()),
            }
        }
        Ok(0)
    }
}

/// The options, a row each.
fn rows(status: &status::Status) -> Vec<String> {
    let row = |option: &ResumeOption| {
        let mark = match (option.recommended, &option.reason) {
            (true, _) => " (recommended)".to_owned(),
            (false, Some(reason)) => format!(" (not now: {reason})"),
            (false, None) => String::new(),
        };
        format!("{}{mark}", option.label)
    };
    status.options.iter().map(row).collect()
}

/// Why an option is not taken now; `None` where it is.
fn not_now(status: &status::Status, option: &ResumeOption) -> Option<String> {
    if option.strategy == OptionCode::Other(OtherWay::CheckStatus) {
        return Some(standing(status));
    }
    let reason = option.reason.as_deref().unwrap_or("not available");
    (!option.available).then(|| format!("That is not possible now: {reason}."))
}

/// Asks what else belongs into the prompt.
fn instructed(
    chosen: &ResumeOption,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> Result<Answer> {
    let failed = |error| Error::io("cannot talk to the terminal", error);
    let strategy = match chosen.strategy {
        OptionCode::Strategy(strategy) => Some(strategy),
        OptionCode::Other(_) => None,
    };
    let takes_text = strategy != Some(Strategy::ManualThenContinue);
    let mut instructions = None;
    if takes_text {
        write!(
            output,
            "Additional instructions (optional, Enter for none): "
        )
        .map_err(failed)?;
        let Some(text) = line(input, output).map_err(failed)? else {
            return Err(nothing_changed(130));
        };
        instructions = Some(text).filter(|text| !text.is_empty());
    }
    let mut same = Hint::recover(chosen.command.last_words());
    let mut beside = "";
    match &instructions {
        Some(text) if redact(text) != text.as_str() => {
            beside = " (with the instructions, which hold a secret)";
        }
        Some(text) => same = same.args(["--instructions", text]),
        None => {}
    }
    writeln!(output, "Same as: {same}{beside}").map_err(failed)?;
    Ok(Answer::Resume(Choice {
        strategy,
        restart: chosen.strategy == OptionCode::Other(OtherWay::StartFresh),
        timeout: chosen.timeout,
        instructions,
    }))
}

/// When the next attempt is allowed.
fn standing(status: &status::Status) -> String {
    match status.retry.standing {
        Standing::Allowed => "The next attempt is allowed now.".to_owned(),
        Standing::Wait(until) => format!("The next attempt is allowed at {}.", date_time(until)),
        Standing::Exhausted => "No attempt is left; each of these grants one more.".to_owned(),
        Standing::NeedsPerson => "A person is needed.".to_owned(),
    }
}

fn shown(status: &status::Status, failure: &Failure, now: Timestamp) -> String {
    let mut text = format!("Run failed: {}\n\n", status.run.key);
    text += &failure_lines(failure, now);
    if let Some(accept) = status.outlook.to_accept.command() {
        text += &format!(
            "  or accept  {} (recommended)\n",
            Hint::recover(accept).run(&status.run.key)
        );
    }
    text + "\n"
}

/// A line without its end; `None` at the end of the input.
fn line(input: &mut impl BufRead, output: &mut impl Write) -> io::Result<Option<String>> {
    output.flush()?;
    let mut text = String::new();
    if input.read_line(&mut text)? == 0 {
        return Ok(None);
    }
    Ok(Some(text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ErrorKind;
    use crate::engine::status::{Retry, Status};
    use crate::model::agent_record::Usage;
    use crate::model::event::{EVENT_SCHEMA, Event, EventSource, Payload};
    use crate::model::failure::FailureEvidence;
    use crate::model::run::{RunKey, RunSpec};
    use crate::model::state::State;
    use crate::policy::classify::classify;
    use crate::policy::retry::{Outlook, resume_options};

    fn failed() -> Status {
        let (key, at) = (RunKey::new("r", None, None), Timestamp::from_millis(0));
        let (task_id, session, worktree) = (None, "r".to_owned(), "/w".into());
        let spec = Box::new(RunSpec {
            iterations_total: Some(2),
            ..RunSpec::default()
        });
        let payload = Payload::RunCreated {
            task_id,
            session,
            worktree,
            spec,
        };
        let mut state = State::default();
        let (schema, source) = (EVENT_SCHEMA, EventSource::Recover);
        state.apply(&Event {
            seq: 1,
            at,
            schema,
            run: Some(key.clone()),
            source,
            payload,
        });
        let mut run = state.run(&key).cloned().unwrap();
        let evidence = FailureEvidence {
            exit_code: Some(1),
            ..FailureEvidence::default()
        };
        let failure = classify(&evidence, None, &[], at);
        run.failure = Some(crate::model::failure::Failure {
            iteration: Some(1),
            ..failure
        });
        Status {
            is_named: false,
            elsewhere: None,
            night: None,
            ended: Vec::new(),
            isolated: Vec::new(),
            outlook: Outlook::default(),
            options: resume_options(&state, &run, Outlook::default(), &|words| {
                Hint::recover(words)
            }),
            manual_steps: Vec::new(),
            manual_fix: None,
            unfinished_operation: None,
            git_locked: None,
            checkpoint_count: 0,
            size_bytes: None,
            latest: None,
            last_good: None,
            session: Usage::default(),
            activity: None,
            remotes: Vec::new(),
            retry: Retry {
                limit: None,
                run: None,
                seen: None,
                status: None,
                standing: Standing::Allowed,
                max_attempts: 3,
                under_way: None,
                is_driven: false,
            },
            vault_off: None,
            run,
        }
    }

    fn typed(at: usize, text: &str) -> (Result<Answer>, String) {
        let mut shown = Vec::new();
        let status = failed();
        let answer = instructed(&status.options[at], &mut text.as_bytes(), &mut shown);
        (answer, String::from_utf8(shown).unwrap())
    }

    /// B7: details, options with the recommended one marked, instructions.
    #[test]
    fn the_screen_shows_the_failure_and_takes_instructions() {
        let status = failed();
        let failure = status.run.failure.as_ref().unwrap();
        let now = Timestamp::from_millis(0);
        assert!(shown(&status, failure, now).contains("iteration  1"));
        let rows = rows(&status);
        assert!(
            rows[0].ends_with("(recommended)") && rows[1].contains("No checkpoint available"),
            "{rows:?}"
        );
        let (answer, shown) = typed(0, "use another library\n");
        let Answer::Resume(choice) = answer.unwrap() else {
            panic!("a choice")
        };
        assert_eq!(choice.strategy, Some(Strategy::RetryWithContext));
        assert_eq!(choice.instructions.as_deref(), Some("use another library"));
        assert!(
            shown.contains("Same as: recover resume --strategy retry_with_context --instructions"),
            "{shown}"
        );
        assert_eq!(
            typed(0, "").0.unwrap_err().kind,
            ErrorKind::Interrupted(130)
        );
    }

    /// B2: what helps beside the strategies can be chosen as well; what is not possible is not.
    #[test]
    fn a_fresh_start_is_among_the_options() {
        let status = failed();
        let rows = rows(&status);
        assert!(rows[5].starts_with("Start fresh"), "{rows:?}");
        assert_eq!(not_now(&status, &status.options[5]), None);
        assert!(not_now(&status, &status.options[1]).is_some());
        let (answer, shown) = typed(5, "\n");
        let Answer::Resume(choice) = answer.unwrap() else {
            panic!("a choice")
        };
        assert_eq!((choice.strategy, choice.restart), (None, true));
        assert!(
            shown.contains("Same as: recover resume --restart\n"),
            "{shown}"
        );
    }
}
