//! One call of `git` that talks to a server: nobody is asked anything, nothing beside the call is started, and it ends.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use itertools::Itertools as _;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::NamedTempFile;

use crate::git::base::error::{Error, Result};
use crate::git::repo::repository::Repo;

/// The protocols that are spoken: none that starts a program of the URL's choice.
pub(super) const PROTOCOLS: [&str; 5] = ["file", "git", "http", "https", "ssh"];

/// A call in which nothing moves for so long is over.
const STALLED: Duration = Duration::from_secs(60);
/// How often it is seen whether a user wants the call to stop.
const GLANCE: Duration = Duration::from_millis(50);
/// How long a call that is ended may tidy up.
const GRACE: Duration = Duration::from_secs(2);
/// How long the rest of the output is waited for when the program is gone: what it started may still have it open.
const REST: Duration = Duration::from_millis(500);
/// More of an answer is not kept, in bytes: a million references.
const MOST: usize = 128 << 20;

/// How long a call may take, and who may stop it.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    begun: Instant,
    timeout: Duration,
    stopped: &'a dyn Fn() -> bool,
}

impl<'a> Limits<'a> {
    /// A call ends after `timeout`, or when nothing moved for a minute; when `stopped` says so it is [`Error::Stopped`].
    pub fn new(timeout: Duration, stopped: &'a dyn Fn() -> bool) -> Self {
        let begun = Instant::now();
        Self {
            begun,
            timeout,
            stopped,
        }
    }

    /// The same, stopped on request.
    pub(super) fn with<'b>(&self, stopped: &'b dyn Fn() -> bool) -> Limits<'b> {
        Limits {
            begun: self.begun,
            timeout: self.timeout,
            stopped,
        }
    }

    /// The same, with another time limit from now on.
    #[cfg(feature = "store")]
    pub(super) fn lasting(&self, timeout: Duration) -> Self {
        Self::new(timeout, self.stopped)
    }

    /// How long a call of several requests may still take.
    #[cfg(feature = "store")]
    pub(super) fn left(&self) -> Duration {
        self.timeout.saturating_sub(self.begun.elapsed())
    }

    /// Whether a user wants the call to stop.
    pub(super) fn is_stopped(&self) -> bool {
        (self.stopped)()
    }
}

impl std::fmt::Debug for Limits<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limits")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// How a call ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// `None`: its time was over, or nothing moved.
    pub status: Option<ExitStatus>,
    pub stdout: Vec<u8>,
    /// What it says, without progress.
    pub said: String,
    /// The headers of the server's last answer, where that was one of HTTP.
    pub headers: Option<Headers>,
}

impl Ended {
    /// What it printed, where it ended well; `name` is what the call is for.
    pub(super) fn printed(self, name: &str) -> Result<String> {
        let said = match self.status {
            Some(status) if status.success() => {
                return Ok(String::from_utf8_lossy(&self.stdout).into_owned());
            }
            Some(_) => self.said,
            None => "it did not end in time".to_owned(),
        };
        let name = name.to_owned();
        Err(Error::Program { name, said })
    }
}

/// What the last answer of an HTTP server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Headers {
    pub status: u16,
    pub fields: Vec<(String, String)>,
    /// Whether the headers of this answer, or of one before it in the same call, came to no end.
    pub is_cut: bool,
}

/// What every call is configured with. Nothing else of the repository or the user is changed by it: no hook, daemon,
/// collection or submodule, no reference or object but those that are named.
const CONFIGURED: [&str; 21] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.prune=false",
    "fetch.pruneTags=false",
    "fetch.writeCommitGraph=false",
    "fetch.fsckObjects=true",
    "fetch.parallel=1",
    // What is recorded of it is durable, so it has to be as well; one pack is synced sooner than many files.
    "core.fsync=all",
    "fetch.unpackLimit=1",
    "push.recurseSubmodules=no",
    "push.followTags=false",
    "push.gpgSign=false",
    "push.pushOption=",
    "push.negotiate=false",
    "transfer.bundleURI=false",
    // Waits are the caller's.
    "http.maxRetries=0",
    "color.ui=false",
];

/// Faults of old histories, which are no danger, and which no server minds.
const OLD_FAULTS: [&str; 7] = [
    "badTimezone",
    "emptyName",
    "missingNameBeforeEmail",
    "missingSpaceBeforeDate",
    "missingSpaceBeforeEmail",
    "zeroPaddedDate",
    "zeroPaddedFilemode",
];

/// Variables that say how servers are reached; all others of git's that lead elsewhere are taken out of the environment.
const OF_TRANSPORT: [&str; 4] = ["GIT_CONFIG_", "GIT_HTTP_", "GIT_PROXY_", "GIT_SSL_"];

/// A command that runs git for a repository, or for none.
pub(super) fn git(repo: Option<&Repo>) -> Command {
    let mut command = Command::new("git");
    for setting in CONFIGURED {
        command.args(["-c", setting]);
    }
    for fault in OLD_FAULTS {
        command.args(["-c", &format!("fetch.fsck.{fault}=ignore")]);
    }
    let is_of_transport = |name: &OsStr| {
        OF_TRANSPORT
            .iter()
            .any(|kept| name.as_encoded_bytes().starts_with(kept.as_bytes()))
    };
    for name in Repo::misleading_variables()
        .into_iter()
        .filter(|name| !is_of_transport(name))
    {
        command.env_remove(name);
    }
    // Their lines would be taken for git's words.
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_TRACE"))
    {
        command.env_remove(name);
    }
    command.env("GIT_ALLOW_PROTOCOL", allowed_protocols());
    // Nobody is there to answer.
    command
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GCM_INTERACTIVE", "never");
    command
        .env_remove("SSH_ASKPASS")
        .env("SSH_ASKPASS_REQUIRE", "never");
    // What it says is read.
    command.env("LC_ALL", "C").env_remove("LANGUAGE");
    if let Some(repo) = repo {
        command
            .current_dir(repo.workdir())
            .env("GIT_DIR", repo.git_dir());
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// [`PROTOCOLS`], as far as the user allows them.
fn allowed_protocols() -> String {
    let users = std::env::var("GIT_ALLOW_PROTOCOL").ok();
    let is_allowed = |name: &&str| {
        users
            .as_ref()
            .is_none_or(|users| users.split(':').any(|one| one == *name))
    };
    PROTOCOLS.iter().copied().filter(is_allowed).join(":")
}

/// The command line of `ssh` that asks nothing; `None` where the user has another program, which has to know by itself.
pub(super) fn batch_ssh(configured: Option<&str>) -> Option<OsString> {
    let own = std::env::var_os("GIT_SSH_COMMAND");
    if own.is_none() && configured.is_none() && std::env::var_os("GIT_SSH").is_some() {
        return None;
    }
    let command = own
        .or_else(|| configured.map(OsString::from))
        .unwrap_or_else(|| "ssh".into());
    let program = command
        .to_str()?
        .split_whitespace()
        .next()
        .unwrap_or_default();
    let is_openssh = Path::new(program)
        .file_name()
        .is_some_and(|name| name == "ssh");
    is_openssh.then(|| {
        let mut batch = command;
        batch.push(" -o BatchMode=yes");
        batch
    })
}

/// Runs a call to its end, or ends it. Over HTTP the headers of the server's answers are had from git's trace.
pub(super) fn run(mut command: Command, is_http: bool, limits: &Limits<'_>) -> Result<Ended> {
    let name = || {
        let words: Vec<_> = command
            .get_args()
            .filter(|word| !word.as_encoded_bytes().contains(&b'='))
            .collect();
        let what = words
            .into_iter()
            .find(|word| *word != "-c" && !word.as_encoded_bytes().starts_with(b"-"));
        format!("git {}", what.unwrap_or_default().to_string_lossy())
    };
    let name = name();
    let failed = |error: std::io::Error| Error::Program {
        name: name.clone(),
        said: error.to_string(),
    };
    let trace = is_http
        .then(|| NamedTempFile::with_prefix("recover-http-"))
        .transpose()
        .map_err(failed)?;
    if let Some(trace) = &trace {
        command.env("GIT_TRACE_CURL", trace.path());
        command
            .env("GIT_TRACE_CURL_NO_DATA", "1")
            .env("GIT_TRACE_REDACT", "1");
    }
    // A group of its own: what git starts for the connection ends with it.
    let mut child = command.process_group(0).spawn().map_err(failed)?;
    let (sender, output) = channel();
    follow(child.stdout.take(), 0, sender.clone());
    follow(child.stderr.take(), 1, sender);
    let (status, [stdout, stderr]) = attend(&mut child, &output, limits, &name)?;
    let headers = trace.and_then(|mut trace| {
        let mut text = Vec::new();
        let read = trace
            .as_file_mut()
            .seek(SeekFrom::Start(0))
            .and_then(|_| trace.as_file_mut().read_to_end(&mut text));
        read.ok()
            .and_then(|_| last_headers(&String::from_utf8_lossy(&text)))
    });
    // The word for a wrong flag: a git that is too old.
    if status.is_some_and(|status| status.code() == Some(129)) {
        let said = String::from_utf8_lossy(&stderr)
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        return Err(Error::Program {
            name,
            said: format!("{said}: git 2.30 or newer is needed"),
        });
    }
    Ok(Ended {
        status,
        stdout,
        said: without_progress(&stderr),
        headers,
    })
}

/// A part of the output, by its number.
type Part = (usize, Vec<u8>);

/// Reads a stream to its end in a thread of its own.
fn follow(stream: Option<impl Read + Send + 'static>, number: usize, sender: Sender<Part>) {
    let Some(mut stream) = stream else { return };
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            if sender.send((number, buffer[..length].to_vec())).is_err() {
                break;
            }
        }
    });
}

/// Waits for the end of a call, or ends it.
fn attend(
    child: &mut Child,
    output: &Receiver<Part>,
    limits: &Limits<'_>,
    name: &str,
) -> Result<(Option<ExitStatus>, [Vec<u8>; 2])> {
    let begun = Instant::now();
    let (mut moved, mut gone) = (begun, None);
    let mut parts = [Vec::new(), Vec::new()];
    let failed = |error: std::io::Error| Error::Program {
        name: name.to_owned(),
        said: error.to_string(),
    };
    loop {
        match output.recv_timeout(GLANCE) {
            Ok((number, bytes)) => {
                moved = Instant::now();
                let part: &mut Vec<u8> = &mut parts[number];
                part.extend_from_slice(&bytes);
                if part.len() > MOST {
                    end(child);
                    let said = "the server sends more than could be meant".to_owned();
                    return Err(Error::Program {
                        name: name.to_owned(),
                        said,
                    });
                }
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            // It has closed both and is about to end.
            Err(RecvTimeoutError::Disconnected) if gone.is_some() => break,
            Err(RecvTimeoutError::Disconnected) => thread::sleep(Duration::from_millis(1)),
        }
        if gone.is_none() {
            gone = child.try_wait().map_err(failed)?;
            if gone.is_some() {
                moved = Instant::now();
            }
        }
        if gone.is_some() {
            if moved.elapsed() > REST {
                break;
            }
            continue;
        }
        if (limits.stopped)() {
            end(child);
            return Err(Error::Stopped);
        }
        if begun.elapsed() > limits.timeout || moved.elapsed() > STALLED {
            end(child);
            break;
        }
    }
    Ok((gone, parts))
}

/// Ends a call with all that it started.
fn end(child: &mut Child) {
    let group = Pid::from_child(child);
    let begun = Instant::now();
    // It may be gone by itself.
    let _ = kill_process_group(group, Signal::TERM);
    while begun.elapsed() < GRACE {
        if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
            break;
        }
        thread::sleep(GLANCE);
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

/// How the lines of git's progress begin, after what says that they are the server's.
const PROGRESS: [&str; 11] = [
    "Enumerating objects",
    "Counting objects",
    "Compressing objects",
    "Writing objects",
    "Receiving objects",
    "Resolving deltas",
    "Unpacking objects",
    "Checking connectivity",
    "Delta compression",
    "Total ",
    "POST git-",
];

/// What is on stderr without progress: of a line that was written over, what stands there at last.
fn without_progress(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines = text.split('\n').map(|line| {
        line.trim_end_matches('\r')
            .rsplit('\r')
            .next()
            .unwrap_or_default()
    });
    let is_progress = |line: &str| {
        let line = line.strip_prefix("remote: ").unwrap_or(line).trim_start();
        PROGRESS.iter().any(|begin| line.starts_with(begin))
    };
    lines
        .map(str::trim_end)
        .filter(|line| !line.is_empty() && !is_progress(line))
        .join("\n")
}

/// The headers of the last answer in git's trace of a connection.
fn last_headers(trace: &str) -> Option<Headers> {
    let mut last: Option<Headers> = None;
    let (mut is_open, mut is_cut) = (false, false);
    for line in trace.lines() {
        let Some((_, header)) = line.split_once("<= Recv header:") else {
            continue;
        };
        let header = header.trim();
        if header.starts_with("HTTP/") {
            is_cut |= is_open;
            is_open = true;
            let status = header
                .split(' ')
                .nth(1)
                .and_then(|status| status.parse().ok())
                .unwrap_or_default();
            last = Some(Headers {
                status,
                ..Headers::default()
            });
        } else if header.is_empty() {
            is_open = false;
        } else if let (Some((name, value)), Some(last)) = (header.split_once(':'), &mut last) {
            last.fields
                .push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    last.map(|last| Headers {
        is_cut: is_cut || is_open,
        ..last
    })
}

impl Headers {
    /// The value of a field, by its name in small letters.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_no_word() {
        let stderr = b"Enumerating objects: 5, done.\nWriting objects:  33% (1/3)\rWriting objects: 100% (3/3), 230 bytes, done.\n\
            Total 3 (delta 0)\nremote: Resolving deltas: 100% (1/1), done.\r\nremote: no \x20\nerror: failed\n";
        assert_eq!(without_progress(stderr), "remote: no\nerror: failed");
    }

    #[test]
    fn the_last_answer_counts() {
        let trace = "12:00:00.1 http.c:845              <= Recv header: HTTP/1.1 401 Unauthorized\n\
            12:00:00.1 http.c:845              <= Recv header: Retry-After: 1\n\
            12:00:00.1 http.c:845              <= Recv header:\n\
            12:00:00.2 http.c:845              <= Recv header: HTTP/1.1 503 Service Unavailable\n\
            12:00:00.2 http.c:845              <= Recv header: Retry-After: 7\n\
            12:00:00.2 http.c:845              <= Recv header:\n\
            12:00:00.2 http.c:845              == Info: Connection #0 left intact\n";
        let headers = last_headers(trace).unwrap();
        assert_eq!(
            (headers.status, headers.get("retry-after"), headers.is_cut),
            (503, Some("7"), false)
        );
        assert_eq!(last_headers("nothing"), None);
    }

    #[test]
    fn headers_that_came_to_no_end_are_seen() {
        let is_cut = |lines: &[&str]| {
            let trace: Vec<String> = lines
                .iter()
                .map(|line| format!("1 http.c:845 <= Recv header: {line}"))
                .collect();
            last_headers(&trace.join("\n").replace(": \n", ":\n"))
                .unwrap()
                .is_cut
        };
        let whole = [
            "HTTP/1.1 200 OK",
            "Content-Type: text/plain",
            "",
            "HTTP/1.1 100 Continue",
            "",
        ];
        assert!(!is_cut(&whole));
        for cut in [0, 1] {
            assert!(is_cut(&whole[..=cut]), "{cut}");
            assert!(is_cut(&[&whole[..=cut], &whole].concat()), "{cut}");
        }
    }
}
