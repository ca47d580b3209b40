//! The resume screen (B7): what failed, the options with the recommended one marked, additional instructions, cancel.
//!
//! Questions go to stderr, so that stdout stays the answer's; nothing is asked unless both ends are a terminal.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::Duration;

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use super::super::live::cut_at_word;
use super::super::render::date_time;
use super::super::terminal_text::wrapped;
use super::super::ui::escape;
use super::{nothing_changed, size};
use crate::engine::{Error, Result, status};
use crate::model::decision::Standing;
use crate::model::{Failure, Hint, Strategy};
use crate::policy::retry::{OptionCode, OtherWay};
use crate::policy::secrets::redact;
use crate::process::Interrupts;

/// This many lines of an error are shown: all of it fits on a small terminal.
const DETAILS: usize = 3;

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

/// Shows the screen and reads the answers; `None` where there is nothing to choose.
pub(crate) fn ask(status: &status::Status, interrupts: &Interrupts) -> Result<Option<Answer>> {
    let mut input = BufReader::new(Typed { interrupts });
    let chosen = choose(status, &mut input, &mut io::stderr());
    match interrupts.pending() {
        Some(signal) => Err(nothing_changed(signal.exit_code())),
        None => chosen,
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

fn choose(
    status: &status::Status,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> Result<Option<Answer>> {
    let failed = |error| Error::io("cannot talk to the terminal", error);
    let Some(failure) = status
        .run
        .failure
        .as_ref()
        .filter(|_| !status.options.is_empty())
    else {
        return Ok(None);
    };
    let shown = wrapped(&shown(status, failure), size().0);
    output.write_all(shown.as_bytes()).map_err(failed)?;

    let recommended = status.options.iter().position(|option| option.recommended);
    let default = recommended
        .map(|at| format!(" [{}]", at + 1))
        .unwrap_or_default();
    let chosen = loop {
        write!(
            output,
            "Choose 1-{}, c to close the run, or q to leave it{default}: ",
            status.options.len()
        )
        .map_err(failed)?;
        let Some(answer) = line(input, output).map_err(failed)? else {
            return Err(nothing_changed(130));
        };
        let number = match (answer.as_str(), recommended) {
            ("c" | "close", _) => return Ok(Some(Answer::Close)),
            ("q" | "quit", _) => return Err(nothing_changed(130)),
            ("", Some(at)) => at + 1,
            (text, _) => text.parse().unwrap_or(0),
        };
        match number.checked_sub(1).and_then(|at| status.options.get(at)) {
            Some(option) if option.strategy == OptionCode::Other(OtherWay::CheckStatus) => {
                writeln!(output, "{}", standing(status)).map_err(failed)?;
            }
            Some(option) if option.available => break option,
            Some(option) => {
                let reason = option.reason.as_deref().unwrap_or("not available");
                writeln!(output, "That is not possible now: {reason}.").map_err(failed)?;
            }
            None => writeln!(output, "Please answer with a number, c or q.").map_err(failed)?,
        }
    };
    let strategy = match chosen.strategy {
        OptionCode::Strategy(strategy) => Some(strategy),
        OptionCode::Other(_) => None,
    };
    let takes_text = strategy != Some(Strategy::ManualThenContinue);
    let mut instructions = None;
    if takes_text {
        write!(output, "Additional instructions (optional): ").map_err(failed)?;
        instructions = line(input, output)
            .map_err(failed)?
            .filter(|text| !text.is_empty());
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
    Ok(Some(Answer::Resume(Choice {
        strategy,
        restart: chosen.strategy == OptionCode::Other(OtherWay::StartFresh),
        timeout: chosen.timeout,
        instructions,
    })))
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

fn shown(status: &status::Status, failure: &Failure) -> String {
    let mut text = format!("Run failed: {}\n\n", status.run.key);
    text += &format!(
        "  Type:      {} ({})\n",
        failure.kind.as_str(),
        failure.cause.as_str()
    );
    if let Some(iteration) = failure.iteration {
        text += &format!("  Iteration: {iteration}\n");
    }
    if let Some(at) = failure.at {
        text += &format!("  Time:      {}\n", date_time(at));
    }
    text += &format!("  Error:     {}\n", escape(&failure.message));
    let told = |line: &&str| !line.trim().is_empty() && !failure.message.contains(line.trim());
    for line in failure
        .details
        .as_deref()
        .unwrap_or_default()
        .lines()
        .filter(told)
        .take(DETAILS)
    {
        text += &format!(
            "             {}\n",
            cut_at_word(&escape(&line.replace('\t', "    ")), 66)
        );
    }
    text.push('\n');
    for (number, option) in status.options.iter().enumerate() {
        let mark = match (option.recommended, &option.reason) {
            (true, _) => " (recommended)".to_owned(),
            (false, Some(reason)) => format!(" (not now: {reason})"),
            (false, None) => String::new(),
        };
        text += &format!(
            "  {}. {}{mark}\n     {}\n",
            number + 1,
            option.label,
            option.description
        );
    }
    if let Some(accept) = status.outlook.to_accept.command() {
        text += &format!(
            "  Or accept what it made: {} (recommended)\n",
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
    use crate::model::time::Timestamp;
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
                run: None,
                status: None,
                standing: Standing::Allowed,
                max_attempts: 3,
                under_way: None,
            },
            run,
        }
    }

    fn answer(text: &str) -> (Result<Option<Answer>>, String) {
        let mut shown = Vec::new();
        let choice = choose(&failed(), &mut text.as_bytes(), &mut shown);
        (choice, String::from_utf8(shown).unwrap())
    }

    /// B7: details, options with the recommended one marked, instructions, cancel.
    #[test]
    fn the_screen_takes_a_number_and_instructions() {
        let (choice, shown) = answer("\nuse another library\n");
        let Some(Answer::Resume(choice)) = choice.unwrap() else {
            panic!("a choice")
        };
        assert_eq!(choice.strategy, Some(Strategy::RetryWithContext));
        assert_eq!(choice.instructions.as_deref(), Some("use another library"));
        assert!(
            shown.contains("(recommended)") && shown.contains("Iteration"),
            "{shown}"
        );
        assert!(
            shown.contains("Same as: recover resume --strategy retry_with_context --instructions"),
            "{shown}"
        );
    }

    /// B2: what helps beside the strategies can be chosen as well.
    #[test]
    fn a_fresh_start_is_among_the_options() {
        let (choice, shown) = answer("6\n\n");
        assert!(shown.contains("6. Start fresh"), "{shown}");
        let Some(Answer::Resume(choice)) = choice.unwrap() else {
            panic!("a choice")
        };
        assert_eq!((choice.strategy, choice.restart), (None, true));
        assert!(
            shown.contains("Same as: recover resume --restart\n"),
            "{shown}"
        );
    }

    #[test]
    fn what_is_not_possible_is_asked_again_and_cancel_changes_nothing() {
        let (choice, shown) = answer("2\nseven\n3\n\n");
        let Some(Answer::Resume(choice)) = choice.unwrap() else {
            panic!("a choice")
        };
        assert_eq!(choice.strategy, Some(Strategy::RetrySame));
        assert!(
            shown.contains("No checkpoint available") && shown.contains("Please answer"),
            "{shown}"
        );
        assert_eq!(answer("c\n").0.unwrap(), Some(Answer::Close));
        for text in ["q\n", ""] {
            assert_eq!(
                answer(text).0.unwrap_err().kind,
                ErrorKind::Interrupted(130),
                "{text:?}"
            );
        }
    }
}
