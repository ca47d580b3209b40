//! What came of a call, from git's words: done, another value is there, refused, away, or not known.
//!
//! git has one exit code for all failures. What `push --porcelain` prints for a reference is exact; else the words of git,
//! ssh and curl decide, which are English here whatever the user's language is. What nobody knows is a refusal: it is shown
//! and not tried again for ever.

use std::time::Duration;

use chrono::DateTime;

use super::call::{Ended, Headers};
use crate::git::base::Error;
use crate::policy::secrets::redact;
use crate::policy::text::escape;

/// Where a remote has the runs, one reference each.
pub(super) const RUNS: &str = "refs/recover-runs/";
/// Where it has what those left who lost a run.
pub(super) const SIDE: &str = "refs/recover-runs-side/";
/// Where the references for the moment are: where those of runs are, as a server may have rules for places. No run's name has a
/// `+`.
pub(super) const SCRATCH: &str = "refs/recover-runs/+check-";

/// What came of a call.
pub type Answer<T> = std::result::Result<T, Missed>;

/// Why a call is not done.
#[derive(Debug)]
pub enum Missed {
    /// The server has another value than the expected one, or none.
    Moved,
    /// The server refuses, in its own words. It is no use to try again.
    Refused(String),
    /// The server cannot be reached now, or wants nobody now. Nothing was changed there.
    Away {
        /// In git's words, or the server's.
        said: String,
        /// What the server asks everybody to wait.
        after: Option<Duration>,
    },
    /// The connection was lost, so that nobody knows whether a push took place: the references have to be read.
    Cut(String),
    /// It failed here.
    Failed(Error),
}

impl From<Error> for Missed {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Missed {
    /// For what changes nothing at the server: a lost connection means only that it is away.
    pub(super) fn of_reading(self) -> Self {
        match self {
            Self::Cut(said) => Self::Away { said, after: None },
            other => other,
        }
    }
}

/// Nobody was there, so nothing can have happened.
const UNREACHABLE: [&str; 14] = [
    "connection refused",
    "connection timed out",
    "could not resolve host",
    "could not resolve proxy",
    "couldn't connect to server",
    "failed to connect to",
    "name or service not known",
    "network is unreachable",
    "no route to host",
    "resolving timed out",
    "temporary failure in name resolution",
    "unable to look up",
    "unable to connect to",
    "kex_exchange_identification",
];

/// A user was there, and the connection ended before its time.
const LOST: [&str; 33] = [
    "bad packet length",
    "banner exchange",
    "broken pipe",
    "closed by remote host",
    "connection closed by",
    "connection reset",
    "connection was reset",
    "connection was non-properly terminated",
    "early eof",
    "empty reply from server",
    "error processing acks",
    "fatal: expected ",
    "failed to report status",
    "hung up unexpectedly",
    "hung up upon initial contact",
    "operation timed out",
    "operation too slow",
    "invalid index-pack output",
    "invalid server response",
    "protocol error: bad line length",
    "recv failure",
    "remote failure",
    "send failure",
    "ssh_dispatch_run_fatal",
    "ssh_exchange_identification",
    "ssl_error_syscall",
    "ssl_read",
    "ssl_write",
    "timeout, server",
    "transfer closed with",
    "unexpected disconnect",
    "unexpected eof",
    "was not closed cleanly",
];

/// What came was whole, and is not what git takes: no connection was lost, whatever else is said.
const NOT_TAKEN: [&str; 3] = [
    "did not receive expected object",
    "fsck error",
    "pack has bad object",
];

/// A server that works asks for another try.
const BUSY: [&str; 7] = [
    "fatal error in commit_refs",
    "file exists",
    "internal server error",
    "rate limit",
    "service unavailable",
    "temporarily unavailable",
    "try again later",
];

/// Another push was first.
const OVERTAKEN: [&str; 9] = [
    "but expected",
    "fetch first",
    "incorrect old value",
    "needs force",
    "non-fast-forward",
    "reference already exists",
    "reference does not exist",
    "stale info",
    "unable to resolve reference",
];

/// How long a caller is asked to wait, at most: a day. A server's clock may be wrong.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

fn has(text: &str, words: &[&str]) -> bool {
    let text = text.to_lowercase();
    words.iter().any(|word| text.contains(word))
}

/// Where the last answer of an HTTP server is not one of git's. An answer that was cut short in its headers git takes for that of
/// a server with files alone, and goes on with what such a one has.
fn of_headers(ended: &Ended) -> Answer<()> {
    let Some(headers) = &ended.headers else {
        return Ok(());
    };
    let kind = headers.get("content-type").unwrap_or("no type");
    if headers.status < 300 && kind.starts_with("application/x-git-") {
        return Ok(());
    }
    if headers.is_cut {
        return Err(Missed::Cut("the server's answer was cut short".to_owned()));
    }
    if headers.status < 300 {
        return Err(Missed::Refused(format!(
            "the server answers with {kind}: git's smart protocol is needed"
        )));
    }
    Ok(())
}

/// What came of a call that changes no reference of the server's.
pub(super) fn of_call(ended: &Ended) -> Answer<()> {
    of_headers(ended)?;
    match ended.status {
        Some(status) if status.success() => Ok(()),
        _ if has(&ended.said, &["couldn't find remote ref"]) => Err(Missed::Moved),
        _ => Err(of_failure(ended)),
    }
}

/// What came of a push, from what it prints for the reference.
pub(super) fn of_push(ended: &Ended, name: &str) -> Answer<()> {
    of_headers(ended)?;
    let printed = String::from_utf8_lossy(&ended.stdout);
    let line = printed.lines().find_map(|line| {
        let mut fields = line.split('\t');
        let (flag, refs, summary) = (fields.next()?, fields.next()?, fields.next()?);
        (refs.rsplit(':').next() == Some(name)).then_some((flag, summary))
    });
    match line {
        Some(("!", summary)) => Err(of_summary(ended, summary)),
        Some(_) if ended.status.is_some_and(|status| status.success()) => Ok(()),
        // The connection failed when all was said.
        _ => Err(of_failure(ended)),
    }
}

/// What git has against the objects that came, in its words: no other try brings better ones.
pub(super) fn not_taken(ended: &Ended) -> Option<String> {
    let failed = !ended.status.is_some_and(|status| status.success());
    (failed && has(&ended.said, &NOT_TAKEN)).then(|| words(ended, None))
}

/// Whether the server itself refused a reference, rather than git here.
pub(super) fn is_refused_there(ended: &Ended) -> bool {
    String::from_utf8_lossy(&ended.stdout).contains("[remote rejected]")
}

/// What is said of a reference that was not updated: `[remote rejected] (reason)`.
fn of_summary(ended: &Ended, summary: &str) -> Missed {
    let is_lock = has(&ended.said, &["cannot lock ref"]);
    if has(summary, &OVERTAKEN) || (is_lock && has(&ended.said, &OVERTAKEN)) {
        return Missed::Moved;
    }
    if has(summary, &LOST) {
        return Missed::Cut(words(ended, Some(summary)));
    }
    if has(summary, &BUSY) || (is_lock && has(&ended.said, &BUSY)) {
        return Missed::Away {
            said: words(ended, Some(summary)),
            after: asked_wait(ended.headers.as_ref()),
        };
    }
    Missed::Refused(words(ended, Some(summary)))
}

/// What a failure means that is of no reference alone.
fn of_failure(ended: &Ended) -> Missed {
    if ended.status.is_none() {
        return Missed::Cut(words(ended, Some("the server did not answer in time")));
    }
    let after = asked_wait(ended.headers.as_ref());
    let away = || Missed::Away {
        said: words(ended, None),
        after,
    };
    match http_status(ended) {
        Some(408 | 425 | 429 | 500..=599) => return away(),
        // Hosts that limit how often they are asked say so.
        Some(403) if after.is_some() || has(&ended.said, &["rate limit"]) => return away(),
        Some(400..=499) => return Missed::Refused(words(ended, None)),
        _ => {}
    }
    if has(&ended.said, &UNREACHABLE) {
        return away();
    }
    // Whoever refuses says so.
    let says_nothing = said_lines(&ended.said).all(|line| line.ends_with(NO_ANSWER));
    if says_nothing || (has(&ended.said, &LOST) && !has(&ended.said, &NOT_TAKEN)) {
        return Missed::Cut(words(ended, None));
    }
    if has(&ended.said, &BUSY) {
        return away();
    }
    Missed::Refused(words(ended, None))
}

/// The status of HTTP that the call ended with, as git says it; else of the last answer, unless there was none any more.
fn http_status(ended: &Ended) -> Option<u16> {
    let number = |after: &str| {
        let (_, rest) = ended.said.split_once(after)?;
        rest.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
            .parse()
            .ok()
    };
    let said: Option<u16> =
        number("requested URL returned error: ").or_else(|| number("RPC failed; HTTP "));
    let is_answered = || !has(&ended.said, &UNREACHABLE) && !has(&ended.said, &LOST);
    let last = || {
        ended
            .headers
            .as_ref()
            .map(|headers| headers.status)
            .filter(|status| *status >= 400)
    };
    said.or_else(|| last().filter(|_| is_answered()))
}

/// How long the server asks to wait: in seconds, or until a time by its own clock.
fn asked_wait(headers: Option<&Headers>) -> Option<Duration> {
    let headers = headers.filter(|headers| headers.status >= 400)?;
    let date = |text: &str| {
        DateTime::parse_from_rfc2822(text)
            .ok()
            .map(|date| date.timestamp())
    };
    let now = headers.get("date").and_then(date);
    let until = |at: i64| u64::try_from(at - now?).ok();
    let asked = headers.get("retry-after")?;
    let seconds = asked.parse().ok().or_else(|| until(date(asked)?))?;
    Some(Duration::from_secs(seconds).min(LONGEST))
}

/// How the lines begin that say something of others.
const ADVICE: [&str; 8] = [
    "hint:",
    "To ",
    "From ",
    "Everything up-to-date",
    "error: failed to push some refs",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
    "Done",
];

/// More than so many characters are not shown; a server may say anything.
const LONGEST_WORDS: usize = 2000;

/// What git says when the other side ended the connection, whatever it said before.
const NO_ANSWER: &str = "Could not read from remote repository.";

/// The lines that say something.
fn said_lines(said: &str) -> impl Iterator<Item = &str> {
    let lines = said
        .lines()
        .map(|line| line.trim().strip_prefix("remote:").unwrap_or(line).trim());
    lines.filter(|line| !line.is_empty() && !ADVICE.iter().any(|begin| line.starts_with(begin)))
}

/// The words of the failure, in a line or a few: the server's, where it says something, and git's. Without secrets.
fn words(ended: &Ended, summary: Option<&str>) -> String {
    let reason = summary.map(|summary| {
        let inner = summary
            .rsplit_once(" (")
            .and_then(|(_, reason)| reason.strip_suffix(')'));
        inner.unwrap_or(summary).to_owned()
    });
    let mut lines: Vec<&str> = Vec::new();
    for line in said_lines(&ended.said) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let said: Vec<&str> = reason
        .as_deref()
        .into_iter()
        .chain(lines.into_iter().take(8))
        .collect();
    let said = if said.is_empty() {
        "git failed and says nothing".to_owned()
    } else {
        said.join("; ")
    };
    let said = escape(&redact(&said));
    match said.char_indices().nth(LONGEST_WORDS) {
        Some((end, _)) => format!("{}…", &said[..end]),
        None => said,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    impl PartialEq for Missed {
        fn eq(&self, other: &Self) -> bool {
            format!("{self:?}") == format!("{other:?}")
        }
    }

    fn ended(code: Option<i32>, stdout: &str, said: &str) -> Ended {
        let status = code.map(|code| ExitStatus::from_raw(code << 8));
        Ended {
            status,
            stdout: stdout.into(),
            said: said.into(),
            headers: None,
        }
    }

    fn pushed(line: &str, said: &str) -> Answer<()> {
        let stdout = format!("To file:///x\n{line}\nDone\n");
        of_push(
            &ended(Some(i32::from(line.starts_with('!'))), &stdout, said),
            "refs/x/r",
        )
    }

    #[test]
    fn a_push_is_what_is_printed_of_its_reference() {
        assert_eq!(pushed("*\tabc:refs/x/r\t[new reference]", ""), Ok(()));
        assert_eq!(pushed(" \tabc:refs/x/r\t1..2", ""), Ok(()));
        assert_eq!(pushed("=\tabc:refs/x/r\t[up to date]", ""), Ok(()));
        for reason in [
            "[rejected] (fetch first)",
            "[rejected] (non-fast-forward)",
            "[rejected] (stale info)",
        ] {
            assert_eq!(
                pushed(&format!("!\tabc:refs/x/r\t{reason}"), ""),
                Err(Missed::Moved),
                "{reason}"
            );
        }
        let rejected = |reason: &str, said: &str| {
            pushed(
                &format!("!\tabc:refs/x/r\t[remote rejected] ({reason})"),
                said,
            )
        };
        assert_eq!(
            rejected("incorrect old value provided", ""),
            Err(Missed::Moved)
        );
        let lock = "remote: error: cannot lock ref 'refs/x/r': is at 1111 but expected 2222";
        assert_eq!(rejected("failed to update ref", lock), Err(Missed::Moved));
        let held =
            "remote: error: cannot lock ref 'refs/x/r': Unable to create '/x/r.lock': File exists.";
        assert!(matches!(
            rejected("failed to update ref", held),
            Err(Missed::Away { .. })
        ));
        assert!(matches!(
            rejected("Internal Server Error", ""),
            Err(Missed::Away { .. })
        ));
        let hook =
            "remote: error: GH013: no such branch here\nerror: failed to push some refs to 'x'";
        let expected = "pre-receive hook declined; error: GH013: no such branch here";
        assert_eq!(
            rejected("pre-receive hook declined", hook),
            Err(Missed::Refused(expected.to_owned()))
        );
        let lost = "!\tabc:refs/x/r\t[remote failure] (remote failed to report status)";
        assert!(matches!(pushed(lost, ""), Err(Missed::Cut(_))));
    }

    #[test]
    fn what_is_printed_before_the_connection_ended_is_no_success() {
        let stdout = "To file:///x\n*\tabc:refs/x/r\t[new reference]\n";
        let said = "fatal: the remote end hung up unexpectedly";
        assert!(matches!(
            of_push(&ended(Some(128), stdout, said), "refs/x/r"),
            Err(Missed::Cut(_))
        ));
        // git says so when an RPC failed.
        let said = "error: RPC failed; curl 56 Recv failure: Connection reset by peer\nEverything up-to-date";
        assert!(matches!(
            of_push(&ended(Some(1), "", said), "refs/x/r"),
            Err(Missed::Cut(_))
        ));
    }

    #[test]
    fn who_is_away_is_distinguished_from_who_refuses() {
        let of = |said: &str| of_call(&ended(Some(128), "", said));
        for said in [
            "fatal: unable to access 'http://127.0.0.1:1/x/': Failed to connect to 127.0.0.1 port 1: Connection refused",
            "fatal: unable to access 'http://h/x/': The requested URL returned error: 503",
            "error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502",
            "fatal: unable to access 'https://h/': Could not resolve host: h",
            "ssh: connect to host h port 22: No route to host\nfatal: Could not read from remote repository.",
            "fatal: unable to access 'https://github.com/x/': The requested URL returned error: 429",
        ] {
            assert!(
                matches!(of(said), Err(Missed::Away { .. })),
                "{said}: {:?}",
                of(said)
            );
        }
        for said in [
            "fatal: unable to access 'http://h/x/': The requested URL returned error: 403",
            "fatal: Authentication failed for 'http://h/x/'",
            "fatal: could not read Username for 'http://h': terminal prompts disabled",
            "git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.",
            "Host key verification failed.\nfatal: Could not read from remote repository.",
            "fatal: '/x' does not appear to be a git repository\nfatal: Could not read from remote repository.",
            "fatal: transport 'ext' not allowed",
            "fatal: did not receive expected object 1a2b\nfatal: fetch-pack: invalid index-pack output",
            "error: object 1a2b: hasDotgit: contains '.git'\nfatal: fsck error in packed object\nfatal: fetch-pack: invalid index-pack output",
        ] {
            assert!(
                matches!(of(said), Err(Missed::Refused(_))),
                "{said}: {:?}",
                of(said)
            );
        }
        for said in [
            "fatal: the remote end hung up unexpectedly",
            "fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.",
            "client_loop: send disconnect: Broken pipe",
            "fatal: early EOF\nfatal: fetch-pack: invalid index-pack output",
            "fetch-pack: unexpected disconnect while reading sideband packet\nfatal: early EOF",
        ] {
            assert!(
                matches!(of(said), Err(Missed::Cut(_))),
                "{said}: {:?}",
                of(said)
            );
        }
        assert_eq!(
            of("fatal: couldn't find remote ref refs/x/y"),
            Err(Missed::Moved)
        );
        assert!(matches!(of_call(&ended(None, "", "")), Err(Missed::Cut(_))));
    }

    #[test]
    fn a_server_says_how_long_to_wait() {
        let with = |status, fields: &[(&str, &str)]| {
            let fields = fields
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let said = format!(
                "fatal: unable to access 'http://h/x/': The requested URL returned error: {status}"
            );
            let headers = Some(Headers {
                status,
                fields,
                is_cut: false,
            });
            of_call(&Ended {
                headers,
                ..ended(Some(128), "", &said)
            })
        };
        let waits = |answer: Answer<()>| match answer {
            Err(Missed::Away { after, .. }) => after.map(|after| after.as_secs()),
            other => panic!("{other:?}"),
        };
        assert_eq!(waits(with(503, &[("retry-after", "120")])), Some(120));
        let date = ("date", "Wed, 21 Oct 2026 07:28:00 GMT");
        assert_eq!(
            waits(with(
                429,
                &[date, ("retry-after", "Wed, 21 Oct 2026 07:29:30 GMT")]
            )),
            Some(90)
        );
        assert_eq!(waits(with(503, &[])), None);
        assert_eq!(
            waits(with(503, &[("retry-after", "99999999")])),
            Some(LONGEST.as_secs())
        );
        assert!(matches!(with(403, &[date]), Err(Missed::Refused(_))));
    }

    #[test]
    fn after_an_answer_that_was_cut_in_its_headers_the_others_say_nothing() {
        let with = |status: u16, is_cut: bool, kind: &str| {
            let fields = vec![("content-type".to_owned(), kind.to_owned())];
            let headers = Some(Headers {
                status,
                fields,
                is_cut,
            });
            let (called, pushed) = (
                ended(Some(0), "", ""),
                ended(Some(0), " \ta:refs/x/r\t1..2\n", ""),
            );
            let called = of_call(&Ended {
                headers: headers.clone(),
                ..called
            });
            let pushed = of_push(&Ended { headers, ..pushed }, "refs/x/r");
            assert_eq!(called, pushed, "{status} {is_cut} {kind}");
            called
        };
        for kind in [
            "application/x-git-upload-pack-advertisement",
            "application/x-git-receive-pack-result",
        ] {
            assert_eq!(with(200, false, kind), Ok(()));
            // What was cut was asked for again.
            assert_eq!(with(200, true, kind), Ok(()));
        }
        for kind in ["text/plain", "", "application/x-g"] {
            assert!(
                matches!(with(200, true, kind), Err(Missed::Cut(_))),
                "{kind}"
            );
            assert!(
                matches!(with(404, true, kind), Err(Missed::Cut(_))),
                "{kind}"
            );
            assert!(
                matches!(with(200, false, kind), Err(Missed::Refused(_))),
                "{kind}"
            );
        }
    }

    #[test]
    fn a_server_cannot_write_to_the_terminal() {
        let said = format!(
            "remote: \u{1b}]0;title\u{7}no{}\nfatal: gone away",
            "x".repeat(5000)
        );
        let Err(Missed::Refused(words)) = of_call(&ended(Some(128), "", &said)) else {
            panic!("not refused")
        };
        assert!(
            !words.contains(['\u{1b}', '\u{7}']) && words.chars().count() <= LONGEST_WORDS + 1,
            "{words}"
        );
    }

    #[test]
    fn the_words_hold_no_password() {
        let said = "fatal: unable to access 'https://me:hunter22@h/x/': The requested URL returned error: 403";
        let Err(Missed::Refused(words)) = of_call(&ended(Some(128), "", said)) else {
            panic!("not refused")
        };
        assert!(
            words.contains("error: 403") && !words.contains("hunter22"),
            "{words}"
        );
    }
}
