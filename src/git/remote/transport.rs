//! A git server, and what is done with it: list, push, fetch.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::answer::{self, Answer, Missed};
use super::call::{self, Ended, Limits, PROTOCOLS, batch_ssh, git};
use crate::git::base::{Error, Result, parse_oid};
use crate::git::repo::repository::Repo;
use crate::model::manifest::ObjectId;

/// How long a question to the configuration, or to the objects here, may take.
const LOCAL: Duration = Duration::from_secs(600);
/// The id of no object.
const NOTHING: &str = "0000000000000000000000000000000000000000";

/// What a reference must be before, and is to be.
pub(super) type Change<'a> = (Option<&'a ObjectId>, Option<&'a ObjectId>);

/// A git server, by the name that git knows it by.
#[derive(Clone, Debug)]
pub(super) struct GitServer {
    name: String,
    /// Where is pushed to; without user and password where it is one of HTTP.
    pub url: String,
    is_http: bool,
    ssh: Option<OsString>,
}

impl GitServer {
    /// The remote of that name. What is no name but a URL or a path, or what git does not know, is
    /// [`Error::UnknownRemote`]; one that leads elsewhere than to one server of an allowed protocol is
    /// [`Error::RefusedRemote`].
    pub(super) fn named(repo: &Repo, name: &str) -> Result<Self> {
        let unknown = |reason: &str| Error::UnknownRemote {
            name: name.to_owned(),
            reason: reason.to_owned(),
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(is_plain)
            && git2::Remote::is_valid_name(name);
        if !is_name {
            return Err(unknown(
                "a URL, path or transport is not taken, only the name of a remote",
            ));
        }
        let asked = |words: &[&str]| {
            local(repo, words).map(|ended| String::from_utf8_lossy(&ended.stdout).into_owned())
        };
        let listed = asked(&["remote", "--verbose"])?;
        let (mut pushed, mut fetched) = (Vec::new(), None);
        for line in listed
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix('\t'))
        {
            if let Some(url) = line.strip_suffix(" (push)") {
                pushed.push(url);
            } else {
                // After it comes the filter of a partial clone.
                fetched = fetched.or_else(|| line.rsplit_once(" (fetch)").map(|(url, _)| url));
            }
        }
        let (Some(push), Some(fetch)) = (pushed.first().copied(), fetched) else {
            return Err(unknown("git knows none of that name here"));
        };
        let refused = |reason: String| {
            Err(Error::RefusedRemote {
                name: name.to_owned(),
                reason,
            })
        };
        if pushed.len() > 1 {
            return refused("it has several URLs to push to, and a run has one place".to_owned());
        }
        for url in [push, fetch] {
            let protocol = protocol_of(url);
            if !PROTOCOLS.contains(&protocol) {
                return refused(format!(
                    "the protocol '{protocol}' is not spoken, only {}",
                    PROTOCOLS.join(", ")
                ));
            }
        }
        let helper = format!("remote.{name}.vcs");
        let settings = format!("^({}|core\\.sshcommand)$", helper.replace('.', "\\."));
        let configured = asked(&["config", "--null", "--get-regexp", &settings])?;
        let set = |setting: &str| {
            let mut lines = configured
                .split('\0')
                .map(|line| line.split_once('\n').unwrap_or((line, "")));
            lines
                .rfind(|(name, _)| *name == setting)
                .map(|(_, value)| value)
        };
        // A helper that the configuration names takes the place of the URL's protocol.
        if set(&helper).is_some() {
            return refused("it is reached by a helper program (vcs)".to_owned());
        }
        let is_http = [push, fetch]
            .iter()
            .any(|url| matches!(protocol_of(url), "http" | "https"));
        let ssh = batch_ssh(set("core.sshcommand"));
        Ok(Self {
            name: name.to_owned(),
            url: without_user(push),
            is_http,
            ssh,
        })
    }

    /// References of the server with what they name; see [`Remote::list`](super::Remote::list).
    pub(super) fn list(
        &self,
        repo: &Repo,
        place: &str,
        limits: &Limits<'_>,
    ) -> Answer<Vec<(String, ObjectId)>> {
        let mut command = self.command(repo);
        command.args(["ls-remote", "--quiet", "--refs", "--", &self.name, place]);
        let ended = call::run(command, self.is_http, limits)?;
        let listed = String::from_utf8_lossy(&ended.stdout);
        let is_meant = |name: &str| match place.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => name == place,
        };
        let refs = listed
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .filter(|(_, name)| is_meant(name));
        let refs: Vec<_> = refs
            .map(|(id, name)| (name.to_owned(), ObjectId(id.to_owned())))
            .collect();
        answer::of_call(&ended).map_err(Missed::of_reading)?;
        if refs.iter().any(|(_, id)| !is_id(&id.0)) {
            return Err(Missed::Refused(
                "what the server lists are no ids of objects".to_owned(),
            ));
        }
        Ok(refs)
    }

    /// Changes a reference of the server, from exactly one value. What is there already is done. A hook `pre-push` in the folder
    /// `hooks` is run after the reference was read and before anything is sent.
    pub(super) fn push(
        &self,
        repo: &Repo,
        name: &str,
        (old, new): Change<'_>,
        hooks: Option<&Path>,
        limits: &Limits<'_>,
    ) -> Answer<()> {
        let mut command = self.command(repo);
        if let Some(hooks) = hooks {
            let mut setting = OsString::from("core.hooksPath=");
            setting.push(hooks);
            command.arg("-c").arg(setting).args(PUSH).arg("--verify");
        } else {
            command.args(PUSH).arg("--no-verify");
        }
        let id = |value: Option<&ObjectId>| value.map_or("", |id| id.0.as_str()).to_owned();
        command.arg(format!("--force-with-lease={name}:{}", id(old)));
        command.args(["--", &self.name, &format!("{}:{name}", id(new))]);
        let ended = call::run(command, self.is_http, limits)?;
        match answer::of_push(&ended, name) {
            // Over HTTP a request whose answer was lost is sent again on the way: what it finds then may be its own work.
            Err(Missed::Moved) if answer::is_refused_there(&ended) => {
                match self.list(repo, name, limits) {
                    Ok(found) if found.first().map(|(_, at)| at) == new => Ok(()),
                    Ok(_) => Err(Missed::Moved),
                    Err(failed @ Missed::Failed(_)) => Err(failed),
                    Err(_) => Err(Missed::Cut(
                        "the server refused what it may have done before".to_owned(),
                    )),
                }
            }
            answer => answer,
        }
    }

    /// Fetches references, or commits by their ids; see [`Remote::fetch`](super::Remote::fetch).
    pub(super) fn fetch(
        &self,
        repo: &Repo,
        refs: &[(String, String)],
        limits: &Limits<'_>,
    ) -> Answer<()> {
        let mut command = self.fetching(repo, NO_BLOB_IS_SO_LARGE, &[]);
        command.args(["--", &self.name]).args(
            refs.iter()
                .map(|(theirs, ours)| format!("+{theirs}:{ours}")),
        );
        let ended = call::run(command, self.is_http, limits)?;
        fetched(&ended)
    }

    /// Fetches what is missing here of a checkpoint's objects, its base aside: a partial clone has only what it was asked for.
    pub(super) fn backfill(
        &self,
        repo: &Repo,
        commit: &ObjectId,
        limits: &Limits<'_>,
    ) -> Answer<()> {
        if !repo.is_partial_clone() {
            return Ok(());
        }
        let found = repo
            .inner
            .find_commit(parse_oid(commit)?)
            .map_err(Error::git("read what was fetched"))?;
        // Those of index and state have no history.
        let parents = found
            .parents()
            .filter(|parent| parent.parent_count() == 0)
            .map(|parent| parent.id());
        let commits: Vec<String> = parents
            .chain([found.id()])
            .map(|id| id.to_string())
            .collect();
        let mut words = vec!["rev-list", "--objects", "--no-walk", "--missing=print"];
        words.extend(commits.iter().map(String::as_str));
        // Trees that are missing hide others: once more for each level.
        loop {
            let listed = local(repo, &words)?.printed("git rev-list")?;
            let missing: Vec<&str> = listed
                .lines()
                .filter_map(|line| line.strip_prefix('?'))
                .collect();
            if missing.is_empty() {
                return Ok(());
            }
            let mut command =
                self.fetching(repo, "blob:none", &["fetch.negotiationAlgorithm=noop"]);
            command.args(["--", &self.name]);
            // As many as fit on a command line.
            command.args(missing.iter().take(1000));
            let ended = call::run(command, self.is_http, limits)?;
            fetched(&ended)?;
        }
    }

    /// A fetch; in a partial clone by a filter, without which git believes that all is here of what it has a commit of. The
    /// clone's configuration stays as it is.
    fn fetching(&self, repo: &Repo, filter: &str, settings: &[&str]) -> Command {
        let mut command = self.command(repo);
        command.args(settings.iter().flat_map(|setting| ["-c", setting]));
        if !repo.is_partial_clone() {
            command.args(FETCH).arg("--no-filter");
            return command;
        }
        for (name, value) in [("promisor", "true"), ("partialclonefilter", filter)] {
            command.args(["-c", &format!("remote.{}.{name}={value}", self.name)]);
        }
        command.args(FETCH).arg(format!("--filter={filter}"));
        command
    }

    /// Whether the server has the history of a commit that is missing in this shallow clone: it would refuse the push else.
    pub(super) fn has_history(&self, repo: &Repo, base: &ObjectId) -> bool {
        let Ok(base) = git2::Oid::from_str(&base.0) else {
            return false;
        };
        let Ok(known) = repo
            .inner
            .references_glob(&format!("refs/remotes/{}/*", self.name))
        else {
            return false;
        };
        known
            .flatten()
            .filter_map(|known| known.resolve().ok()?.target())
            .any(|known| repo.history().merge_base(known, base).is_ok())
    }

    /// Whether anybody can read it without a key or password; `None` where that cannot be found out.
    ///
    /// A server of HTTP is asked once more, with nothing of the user's configuration.
    pub(super) fn is_public(&self, limits: &Limits<'_>) -> Result<Option<bool>> {
        match protocol_of(&self.url) {
            "git" => return Ok(Some(true)),
            "http" | "https" => {}
            _ => return Ok(None),
        }
        let mut command = git(None);
        for (name, _) in std::env::vars_os()
            .filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_CONFIG_"))
        {
            command.env_remove(name);
        }
        command
            .current_dir("/")
            .env("GIT_CEILING_DIRECTORIES", "/")
            .env_remove("GIT_ASKPASS");
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        // `.netrc` lies there.
        command
            .env("HOME", "/nonexistent")
            .env_remove("XDG_CONFIG_HOME");
        command.args(["ls-remote", "--quiet", "--heads", "--", &self.url]);
        Ok(match answer::of_call(&call::run(command, true, limits)?) {
            Ok(()) => Some(true),
            Err(Missed::Refused(_)) => Some(false),
            Err(_) => None,
        })
    }

    fn command(&self, repo: &Repo) -> Command {
        let mut command = git(Some(repo));
        // It would send everything else, and delete what is not here.
        command.args(["-c", &format!("remote.{}.mirror=false", self.name)]);
        if let Some(ssh) = &self.ssh {
            command.env("GIT_SSH_COMMAND", ssh);
        }
        command
    }
}

/// What came of a fetch.
pub(super) fn fetched(ended: &Ended) -> Answer<()> {
    let is_full = ended
        .said
        .lines()
        .any(|line| !line.starts_with("remote:") && line.contains("No space left"));
    if is_full {
        return Err(Missed::Failed(Error::NoSpace {
            path: "the objects of the repository".into(),
            needed: None,
        }));
    }
    if let Some(what) = answer::not_taken(ended) {
        return Err(Missed::Failed(Error::Corrupt(what)));
    }
    answer::of_call(ended).map_err(Missed::of_reading)
}

/// A push of what is named and nothing else.
const PUSH: [&str; 8] = [
    "push",
    "--porcelain",
    "--progress",
    "--no-follow-tags",
    "--no-signed",
    "--recurse-submodules=no",
    "--no-atomic",
    "--no-force-if-includes",
];

/// A fetch of what is named and nothing else.
pub(super) const FETCH: [&str; 8] = [
    "fetch",
    "--progress",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
    "--no-prune",
    "--refmap=",
];

/// A filter that leaves nothing out.
const NO_BLOB_IS_SO_LARGE: &str = "blob:limit=3g";

/// A call that reaches no server.
fn local(repo: &Repo, words: &[&str]) -> Result<Ended> {
    let mut command = git(Some(repo));
    // What is missing is not to be fetched on the way.
    command.env("GIT_NO_LAZY_FETCH", "1").args(words);
    call::run(command, false, &Limits::new(LOCAL, &|| false))
}

pub(super) fn is_id(text: &str) -> bool {
    text.len() == NOTHING.len()
        && text != NOTHING
        && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The protocol of a URL, as git takes it: `helper::address` starts a helper, `host:path` is ssh's, all else a path.
fn protocol_of(url: &str) -> &str {
    let is_scheme = |text: &&str| {
        let is_of_it = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        !text.is_empty() && text.chars().all(is_of_it)
    };
    if let Some((helper, _)) = url.split_once("::").filter(|(helper, _)| is_scheme(helper)) {
        return helper;
    }
    match url
        .split_once("://")
        .filter(|(scheme, _)| is_scheme(scheme))
    {
        // Old names of ssh's.
        Some(("git+ssh" | "ssh+git", _)) => "ssh",
        Some((scheme, _)) => scheme,
        None if url
            .split_once(':')
            .is_some_and(|(host, _)| !host.contains('/')) =>
        {
            "ssh"
        }
        None => "file",
    }
}

/// A URL without who logs in, where that may be a token.
pub(super) fn without_user(url: &str) -> String {
    match url
        .split_once("://")
        .filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
    {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_gits() {
        for (url, protocol) in [
            ("https://h/x.git", "https"),
            ("ssh://git@h/x", "ssh"),
            ("git@h:x/y.git", "ssh"),
            ("h:x", "ssh"),
            ("git://h/x", "git"),
            ("git+ssh://h/x", "ssh"),
            ("/srv/x.git", "file"),
            ("../x:y", "file"),
            ("./x", "file"),
            ("file:///x", "file"),
            ("ext::sh -c true", "ext"),
            ("fd::3", "fd"),
            ("hg::https://h/x", "hg"),
            ("ftp://h/x", "ftp"),
        ] {
            assert_eq!(protocol_of(url), protocol, "{url}");
        }
    }

    #[test]
    fn who_logs_in_is_not_shown() {
        assert_eq!(without_user("https://me:secret@h:1/x@y"), "https://h:1/x@y");
        assert_eq!(without_user("https://token@h"), "https://h");
        assert_eq!(without_user("git@h:x"), "git@h:x");
    }
}
