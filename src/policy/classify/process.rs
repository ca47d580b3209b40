//! What the process itself shows: deadline, cancellation, signal, status.

use std::time::Duration;

use super::conclusion::Conclusion;
use super::rules::{CANCELLED, CRASHED, DENIED, INVALID, KILLED, MISSING, NO_TOOL, TIMEOUT};
use crate::model::failure::FailureEvidence;
use crate::model::feedback::CheckKind;
use crate::model::time::format_duration;
use crate::policy::patterns::Single;

/// A program ends with 128+n when a signal n ended its child.
fn signal_of_status(code: i32) -> Option<&'static str> {
    // Some supervisors write the signal as a negative status.
    match if code < 0 {
        code.saturating_neg().saturating_add(128)
    } else {
        code
    } {
        129 => Some("SIGHUP"),
        130 => Some("SIGINT"),
        131 => Some("SIGQUIT"),
        132 => Some("SIGILL"),
        133 => Some("SIGTRAP"),
        134 => Some("SIGABRT"),
        135 => Some("SIGBUS"),
        136 => Some("SIGFPE"),
        137 => Some("SIGKILL"),
        139 => Some("SIGSEGV"),
        142 => Some("SIGALRM"),
        143 => Some("SIGTERM"),
        152 => Some("SIGXCPU"),
        159 => Some("SIGSYS"),
        _ => None,
    }
}

/// The signal that ended the run, by name or by status. Some runners end with the number of failed tests, which
/// may look like a signal.
pub(super) fn signal(evidence: &FailureEvidence, failed_count: Option<u64>) -> Option<String> {
    if let Some(signal) = &evidence.signal {
        return Some(if signal.starts_with("SIG") {
            signal.clone()
        } else {
            format!("SIG{signal}")
        });
    }
    signal_of_status(status(evidence, failed_count)?).map(str::to_owned)
}

/// The exit status, unless it is the number of tests that failed.
fn status(evidence: &FailureEvidence, failed_count: Option<u64>) -> Option<i32> {
    let is_count = |code: &i32| u64::try_from(*code).is_ok_and(|code| failed_count == Some(code));
    evidence.exit_code.filter(|code| !is_count(code))
}

/// Step 1: the supervisor's deadline, or `timeout(1)` in the command, or a signal that only a limit sends.
pub(super) fn time_limit(evidence: &FailureEvidence, signal: Option<&str>) -> Option<Conclusion> {
    let over = matches!((evidence.duration, evidence.deadline), (Some(took), Some(limit)) if took >= limit);
    if evidence.timed_out || over {
        let limit = evidence.deadline.map_or(String::new(), |limit| {
            format!(" after {}", format_duration(limit))
        });
        return Some(Conclusion::bare(
            "process.deadline",
            TIMEOUT,
            format!("Timed out{limit}"),
        ));
    }
    if let Some(name @ ("SIGALRM" | "SIGXCPU" | "SIGVTALRM" | "SIGPROF")) = signal {
        return Some(Conclusion::bare(
            "process.limit-signal",
            TIMEOUT,
            format!("Ended by {name}"),
        ));
    }
    let limit = evidence.command.as_deref().and_then(limit_in_command)?;
    let ended =
        evidence.exit_code == Some(124) || matches!(signal, Some("SIGKILL" | "SIGTERM" | "SIGINT"));
    // `timeout 60 sh -c 'exit 124'` after a second is no time limit.
    let long_enough = evidence
        .duration
        .is_none_or(|took| took.as_secs_f64() >= limit.as_secs_f64() * 0.95);
    (ended && long_enough).then(|| {
        Conclusion::bare(
            "process.timeout1",
            TIMEOUT,
            format!(
                "The command's own limit ended it after {}",
                format_duration(limit)
            ),
        )
    })
}

/// Whether a bare status 124 may stem from a time limit inside a script: nothing else explains it.
pub(super) fn bare_124(evidence: &FailureEvidence) -> Option<Conclusion> {
    let command = evidence.command.as_deref().unwrap_or_default();
    let other = command.contains("xargs") || limit_in_command(command).is_some();
    (evidence.exit_code == Some(124) && !other)
        .then(|| Conclusion::bare("process.status-124", TIMEOUT, "Exit status 124"))
}

/// The limit that `timeout(1)`, `ulimit -t` or `prlimit --cpu` in a command line sets.
fn limit_in_command(command: &str) -> Option<Duration> {
    static TIMEOUT1: Single = Single::new(concat!(
        r"(?:^|[\s;&|(/'\x22])(?:",
        r"g?timeout(?:\s+(?:-[ks](?:\s+|=)?\S+|--(?:signal|kill-after)(?:=|\s+)\S+|-\S+))*\s+",
        r"|ulimit\s+-[HS]*t\s+|prlimit\s.*--cpu=",
        r")(\d+(?:\.\d+)?)([smhd]?)(?:[\s;:&'\x22]|$)",
    ));
    let found = TIMEOUT1.first(command)?;
    let number: f64 = command[found.group(1)?].parse().ok()?;
    let unit = match found.group(2).map_or("", |unit| &command[unit]) {
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => 1.0,
    };
    Duration::try_from_secs_f64(number * unit).ok()
}

/// Whoever ran it stopped it.
pub(super) fn cancelled() -> Conclusion {
    Conclusion::bare("process.cancelled", CANCELLED, "Cancelled")
}

/// Step 2: a user stopped it.
pub(super) fn cancellation(evidence: &FailureEvidence, signal: Option<&str>) -> Option<Conclusion> {
    if evidence.cancelled {
        return Some(cancelled());
    }
    let name =
        signal.filter(|name| matches!(*name, "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGQUIT"))?;
    Some(Conclusion::bare(
        "process.interrupt",
        CANCELLED,
        format!("Interrupted by {name}"),
    ))
}

/// Step 3: a signal that nobody sends to stop a run politely.
pub(super) fn crash(signal: Option<&str>) -> Option<Conclusion> {
    let name =
        signal.filter(|name| !matches!(*name, "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGQUIT"))?;
    Some(died(name))
}

/// The signal with this name ended it.
pub(super) fn died(name: &str) -> Conclusion {
    let verdict = if name == "SIGKILL" { KILLED } else { CRASHED };
    Conclusion::bare("process.signal", verdict, format!("Ended by {name}"))
}

/// Step 5: it could not be started at all.
pub(super) fn not_started(evidence: &FailureEvidence) -> Option<Conclusion> {
    static REFUSED: Single = Single::new(r"(?i)permission denied|os error 13|eacces|not permitted");
    let error = evidence.spawn_error.as_deref()?;
    let is_denied = REFUSED.first(error).is_some();
    let verdict = if is_denied { DENIED } else { NO_TOOL };
    Some(Conclusion::bare("process.spawn", verdict, error))
}

/// Step 5: the shell's statuses for a command that it could not find or run.
pub(super) fn shell_status(
    evidence: &FailureEvidence,
    failed_count: Option<u64>,
) -> Option<Conclusion> {
    let (rule, verdict, text) = match status(evidence, failed_count)? {
        127 => (
            "process.status-127",
            NO_TOOL,
            "Exit status 127: a command was not found",
        ),
        126 => (
            "process.status-126",
            DENIED,
            "Exit status 126: a command could not be run",
        ),
        _ => return None,
    };
    Some(Conclusion::bare(rule, verdict, text))
}

/// Step 6: the statuses of `sysexits.h` for a command line and for a configuration that are wrong, and for an input that is
/// not there; a count of failures they may be, too.
pub(super) fn usage_status(
    evidence: &FailureEvidence,
    stage: Option<CheckKind>,
    failed_count: Option<u64>,
) -> Option<Conclusion> {
    let (rule, verdict, text) = match status(evidence, failed_count)? {
        64 => (
            "process.status-64",
            INVALID,
            "Exit status 64: it was called wrongly",
        ),
        // A sanitizer ends a test with it.
        66 if stage != Some(CheckKind::Test) => (
            "process.status-66",
            MISSING,
            "Exit status 66: an input is not there",
        ),
        78 => (
            "process.status-78",
            INVALID,
            "Exit status 78: its configuration is wrong",
        ),
        _ => return None,
    };
    Some(Conclusion::bare(rule, verdict, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_timeout1_is_read() {
        for (command, seconds) in [
            ("timeout 4 cargo test", Some(4)),
            ("cd x && timeout -k 5 -s KILL 2m make", Some(120)),
            ("timeout --signal=INT 1h ./x", Some(3600)),
            ("pytest --timeout 4", None),
            ("./timeout.sh 4", None),
            ("ulimit -t 5; ./x", Some(5)),
            ("sh -c 'timeout 4 make'", Some(4)),
            ("sh -c 'ulimit -t 5'", Some(5)),
        ] {
            assert_eq!(
                limit_in_command(command),
                seconds.map(Duration::from_secs),
                "{command}"
            );
        }
    }

    #[test]
    fn a_status_may_be_a_count() {
        let evidence = FailureEvidence {
            exit_code: Some(139),
            ..FailureEvidence::default()
        };
        assert_eq!(signal(&evidence, None).as_deref(), Some("SIGSEGV"));
        assert_eq!(signal(&evidence, Some(139)), None);
    }
}
