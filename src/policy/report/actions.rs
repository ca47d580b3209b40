//! What to do now: concrete steps, each with a command to copy where there is one.

use itertools::Itertools as _;

use super::summary::{failures, files};
use super::{Source, words};
use crate::model::Hint;
use crate::model::hint::{join, quote};
use crate::model::{Attempt, Cause, Decision, Failure, IterationStatus, RunStatus, Strategy};
use crate::policy::changes::tampering_text;
use crate::policy::retry::{
    OptionCode, ResumeOption, ToAccept, manual_steps, next_command, resume_options,
};
use crate::policy::secrets::redact;

use super::data::Recommended;

/// The steps, what is recommended first; before it only what was interrupted.
pub(super) fn recommended(source: &Source<'_>) -> Vec<Recommended> {
    let mut steps = Steps {
        source,
        steps: Vec::new(),
    };
    steps.all();
    let command = next_command(source.run, source.outlook).map(|words| (source.command)(&words));
    let mut steps = steps.steps;
    for step in &mut steps {
        step.by_policy = command.is_some() && step.command == command;
    }
    if command.is_some() && !steps.iter().any(|step| step.by_policy) {
        let accepts = source.outlook.to_accept != ToAccept::Nothing;
        let accept = "Accept what it made: ordinary commits of yours";
        let what = if accepts {
            accept
        } else {
            "Go on with the run"
        };
        steps.push(Recommended {
            description: what.to_owned(),
            command,
            by_policy: true,
        });
    }
    steps.sort_by_key(|step| !step.by_policy);
    if let Some(unfinished) = source.unfinished {
        steps.insert(
            0,
            Recommended {
                description: format!("Finish what was interrupted: {}", words::line(unfinished)),
                command: Some((source.command)(&["doctor", "--repair"])),
                by_policy: false,
            },
        );
    }
    steps
}

struct Steps<'a, 'b> {
    source: &'a Source<'b>,
    steps: Vec<Recommended>,
}

impl Steps<'_, '_> {
    fn all(&mut self) {
        let run = self.source.run;
        if run.is_being_fixed() {
            return self.finish_fix();
        }
        if self.source.outlook.at_work && run.live.is_none() {
            self.look();
            return self.step("Watch it: it is at work", &["status"]);
        }
        let decision = run.decision.as_ref();
        let leads_on = decision.is_some_and(Decision::leads_to_attempt);
        let failure = run.failure.as_ref();
        let recoverable = failure.is_none_or(|failure| failure.recoverable);
        match run.status {
            RunStatus::Complete | RunStatus::Accepted => self.look_at_given_up(),
            RunStatus::Closed => self.step("Take the closed run up again", &["resume"]),
            RunStatus::InProgress | RunStatus::Blocked if run.live.is_some() => {
                self.step("Watch it; an attempt is under way", &["status"]);
            }
            RunStatus::Pending => self.begin(),
            RunStatus::InProgress if run.failure.is_none() => self.begin(),
            RunStatus::InProgress if leads_on => {
                self.look();
                self.wait();
            }
            RunStatus::Parked => self.wait(),
            RunStatus::Cancelled | RunStatus::RolledBack => {
                self.look();
                self.go_on("Resume the run", &["resume"]);
            }
            RunStatus::Paused if recoverable => {
                self.look();
                self.wait();
            }
            _ => self.solve(),
        }
        if run.status != RunStatus::Closed && !run.status.is_done() && run.live.is_none() {
            self.other_ways();
        }
    }

    /// Whether a loop runs the attempts, rather than `recover` a command.
    fn is_loop(&self) -> bool {
        self.source.run.spec.command.is_empty()
    }

    fn begin(&mut self) {
        if self.is_loop() {
            self.go_on("Record the loop's next attempt", &["attempt", "start"]);
        } else {
            self.go_on("Take the run up", &["resume"]);
        }
    }

    fn wait(&mut self) {
        if self.is_loop() {
            let what = "Wait until the loop may try again";
            self.go_on(what, &["retry-status", "--wait"]);
        } else {
            self.go_on("Continue when the wait is over", &["resume", "--wait"]);
        }
    }

    /// What a failure asks of a person.
    fn solve(&mut self) {
        self.look();
        self.reproduce();
        let Some(failure) = &self.source.run.failure else {
            return self.go_on("Resume the run", &["resume"]);
        };
        if failure.recoverable {
            self.check_around(failure);
            self.compare();
            self.ways_on();
        } else {
            self.by_hand(failure);
        }
    }

    fn look(&mut self) {
        let log = |attempt: &Attempt| attempt.log_path.clone();
        if let Some(log) = self.failed_attempt().and_then(log) {
            let command = join(["tail", "-n", "100", "--", log.as_str()]);
            self.push("Review the error log", Some(command));
        }
    }

    /// The attempt whose error matters most.
    fn failed_attempt(&self) -> Option<&Attempt> {
        failures(self.source).first().map(|(_, attempt)| *attempt)
    }

    fn reproduce(&mut self) {
        let attempt = self.failed_attempt();
        let mut results = attempt.iter().flat_map(|attempt| &attempt.feedback_results);
        let failing = results.find(|(_, result)| !result.passed);
        let mut loops = self.source.loops.iter();
        let Some(failing) = failing.and_then(|(name, _)| loops.find(|known| known.name == *name))
        else {
            return;
        };
        // A command with a secret in it is not repeated.
        let whole = redact(&failing.command) == failing.command && !failing.command.contains('\n');
        let folder = quote(self.source.run.worktree.path());
        let command = whole.then(|| format!("(cd {folder} && {})", failing.command));
        let name = words::line(&failing.name);
        self.push(&format!("Run the failing check '{name}' yourself"), command);
    }

    fn check_around(&mut self, failure: &Failure) {
        let advice = match failure.cause {
            Cause::NetworkError => "Check the network connection and external dependencies",
            Cause::RateLimited => "Check the plan's usage limit, or wait for its reset",
            Cause::ToolTimeout => "Find what hangs, or give attempts more time (--timeout)",
            Cause::BrokenBuild => "Fix the build, or go back to the last state that built",
            Cause::InvalidInput => "Correct the prompt or the arguments",
            Cause::VerificationFailed => {
                "Consider an alternative approach, and whether the check itself is right"
            }
            Cause::Crashed => "Check for memory limits or signals that ended the process",
            _ => "Check external dependencies, and consider an alternative approach",
        };
        self.push(advice, None);
        let changed = files(self.source).dependencies;
        let mut names = changed.iter().map(|path| words::line(&path.to_lossy()));
        let names = names.join(", ");
        if !names.is_empty() {
            let what = format!("Check external dependencies: attempts changed {names}");
            self.push(&what, None);
        }
    }

    fn compare(&mut self) {
        if self.source.state.last_good(&self.source.run.key).is_some() {
            self.step(
                "See what changed since the last good checkpoint",
                &["checkpoint", "diff", "good", "--patch"],
            );
            self.step(
                "Go back to the last good checkpoint (--dry-run shows it first)",
                &["rollback", "--to", "good"],
            );
        }
    }

    /// What helps beside the strategies.
    fn other_ways(&mut self) {
        let options = self.options();
        let is_meant = |option: &&ResumeOption| {
            option.available && matches!(option.strategy, OptionCode::Other(_))
        };
        for option in options.iter().filter(is_meant) {
            self.option(option);
        }
    }

    fn options(&self) -> Vec<ResumeOption> {
        let Source {
            state,
            run,
            outlook,
            ..
        } = self.source;
        resume_options(state, run, *outlook, &|words| Hint::recover(words))
    }

    fn ways_on(&mut self) {
        let mut options = self.options();
        // The very same again is worth a line only where the policy would do it.
        let told = |option: &ResumeOption| match option.strategy {
            OptionCode::Strategy(Strategy::ManualThenContinue) | OptionCode::Other(_) => false,
            OptionCode::Strategy(Strategy::RetrySame) => option.recommended,
            OptionCode::Strategy(_) => true,
        };
        options.retain(|option| option.available && told(option));
        options.sort_by_key(|option| !option.recommended);
        let fix = "Fix it by hand: start, verify, continue";
        if self.source.outlook.unchecked {
            // Nothing would verify it.
        } else if options.iter().any(|option| option.recommended) {
            self.step(fix, &["manual-fix", "start"]);
        } else {
            self.go_on(fix, &["manual-fix", "start"]);
        }
        for option in options {
            self.option(&option);
        }
    }

    fn option(&mut self, option: &ResumeOption) {
        let words = option.command.last_words();
        let command = (self.source.command)(&words);
        let description = format!("{}: {}", option.label, option.description);
        self.steps.push(Recommended {
            description,
            command: Some(command),
            by_policy: option.recommended,
        });
    }

    /// Nothing automatic helps (B5).
    fn by_hand(&mut self, failure: &Failure) {
        for step in manual_steps(failure, None) {
            let quoted = step
                .split('`')
                .nth(1)
                .and_then(|quoted| quoted.strip_prefix("recover "));
            match quoted {
                Some(quoted) => {
                    let description = step.split([':', '(']).next().unwrap_or(&step).trim();
                    self.step(description, &quoted.split(' ').collect::<Vec<_>>());
                }
                None => self.push(&step.replace('`', ""), None),
            }
        }
    }

    fn finish_fix(&mut self) {
        self.step("See what the fix has changed", &["manual-fix", "status"]);
        if self.source.outlook.unchecked {
            self.push(
                "Configure how a fix is verified: add [[feedback]] to .ultraplan/recover.toml",
                None,
            );
            self.go_on(
                "Or go on unchecked: end the fix (the files stay)",
                &["manual-fix", "abort"],
            );
            return self.step(
                "Then accept the files as they are and go on",
                &["resume", "--strategy", "continue_next"],
            );
        }
        self.step("Run the checks on the fix", &["manual-fix", "verify"]);
        self.go_on(
            "Continue with the verified fix",
            &["manual-fix", "continue"],
        );
        self.step("Or abandon the fix", &["manual-fix", "abort"]);
    }

    /// The run ended, but not everything in it was done.
    fn look_at_given_up(&mut self) {
        for (iteration, attempt) in self.source.run.weakened_attempts() {
            let notes = words::line(&tampering_text(&attempt.notes, "; "));
            let number = attempt.number;
            self.push(
                &format!("Look at the tests that attempt {number} of iteration {iteration} weakened: {notes}"),
                None,
            );
        }
        let mut given_up = words::with_status(self.source.run, IterationStatus::Skipped);
        if given_up.next().is_some() {
            self.look();
            self.push("Review what was given up; the run itself is complete", None);
        }
    }

    fn go_on(&mut self, description: &str, words: &[&str]) {
        self.step(description, words);
        if let Some(last) = self.steps.last_mut() {
            last.by_policy = true;
        }
    }

    fn step(&mut self, description: &str, words: &[&str]) {
        let command = (self.source.command)(words);
        self.push(description, Some(command));
    }

    fn push(&mut self, description: &str, command: Option<String>) {
        self.steps.push(Recommended {
            description: description.to_owned(),
            command,
            by_policy: false,
        });
    }
}
