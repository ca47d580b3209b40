//! `recover service`: what starts the runs again that ended with the machine is written, shown and removed to the byte.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::env::{Ran, TestEnv};
use crate::run::supervision::until;

/// A machine that has these programs, which write down how they were called; none of the three answers otherwise.
fn machine(programs: &[(&str, &str)]) -> TestEnv {
    let mut env = TestEnv::repo();
    for name in ["systemctl", "launchctl", "loginctl", "crontab"] {
        let body = programs.iter().find(|(program, _)| *program == name);
        let body = body.map_or("exit 1", |(_, body)| body);
        let body = format!("root=${{0%/*}}/..; echo {name} \"$@\" >> $root/calls\n{body}");
        env.script(&format!("../bin/{name}"), &body);
    }
    let path = std::env::var("PATH").expect("works");
    let path = format!("{}/bin:{path}", env.root().display());
    env.set("PATH", &path);
    env
}

const CRONTAB: &str = r"case $1 in
    -l) [ -e $root/crontab ] && cat $root/crontab || { echo 'no crontab for me' >&2; exit 1; } ;;
    -r) rm $root/crontab ;;
    -) cat > $root/crontab ;;
esac";
/// Enabled is what there is a file `enabled` for.
const SYSTEMCTL: &str = r#"case "$*" in
    *is-enabled*|*is-active*) [ -e $root/enabled ] ;;
    *disable*) rm $root/enabled ;;
    *enable*) touch $root/enabled ;;
esac"#;
const LAUNCHCTL: &str = r"case $1 in
    print) [ -e $root/enabled ] ;;
    bootstrap) touch $root/enabled ;;
    bootout) rm $root/enabled ;;
esac";

fn read(env: &TestEnv, path: &str) -> String {
    std::fs::read_to_string(env.root().join(path)).unwrap_or_default()
}

fn put(env: &TestEnv, path: &str, text: &str) {
    let path = env.root().join(path);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("works");
    std::fs::write(path, text).expect("works");
}

/// Every path below the home folder but the state, with what is there.
fn home(env: &TestEnv) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![env.root().join("home")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.ends_with(".local") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path.clone());
            }
            all.insert(path, text);
        }
    }
    all
}

fn calls(env: &TestEnv, what: &str) -> usize {
    let calls = read(env, "calls");
    calls.lines().filter(|line| line.contains(what)).count()
}

fn service(env: &TestEnv, what: &str) -> Value {
    env.json(0, &["service", what])
}

#[test]
fn units_of_systemd_are_written_shown_and_removed() {
    let env = machine(&[("systemctl", SYSTEMCTL), ("loginctl", "echo Linger=no")]);
    std::fs::create_dir_all(env.root().join("home/.config")).expect("works");
    put(&env, "home/.config/mine", "mine");
    let before = home(&env);
    let planned = env.json(0, &["--dry-run", "service", "install"]);
    assert_eq!(
        (&planned["changed"], &planned["plan"]["manager"]),
        (&json!(false), &json!("systemd"))
    );
    assert_eq!(home(&env), before);
    assert_eq!(service(&env, "status")["installed"], false);

    let installed = service(&env, "install");
    let timer = "home/.config/systemd/user/recover-resume.timer";
    assert_eq!(
        (
            &installed["changed"],
            &installed["files"][1]["change"],
            &installed["commands"]
        ),
        (
            &json!(true),
            &json!("created"),
            &json!([
                "systemctl --user daemon-reload",
                "systemctl --user enable --now recover-resume.timer"
            ])
        ),
        "{installed:#}"
    );
    let notes = installed["notes"].to_string();
    assert!(
        notes.contains("loginctl enable-linger") && notes.contains("environment.d"),
        "{notes}"
    );
    let text = read(&env, "home/.config/systemd/user/recover-resume.service");
    let program = env!("CARGO_BIN_EXE_recover");
    assert!(
        text.contains(&format!(
            "\nExecStart=\"{program}\" resume --interrupted --all-repos\n"
        )),
        "{text}"
    );
    assert!(read(&env, timer).contains("\nOnUnitInactiveSec=15min\n"));
    let verify = "mkdir ../run; command -v systemd-analyze > ../has && XDG_RUNTIME_DIR=$PWD/../run systemd-analyze --user --man=no verify \
                  $HOME/.config/systemd/user/recover-resume.timer";
    let verified = env.sh(verify);
    assert!(
        verified.code == 0 || read(&env, "has").is_empty(),
        "{verified:?}"
    );

    let again = service(&env, "install");
    assert_eq!(
        (&again["changed"], &again["commands"]),
        (&json!(false), &json!([])),
        "{again:#}"
    );
    assert_eq!(calls(&env, "daemon-reload"), 1);
    let status = service(&env, "status");
    let files = |status: &Value| {
        [&status["files"][0]["state"], &status["files"][1]["state"]].map(Value::clone)
    };
    assert_eq!(files(&status), ["current", "current"]);
    assert_eq!(
        (&status["complete"], &status["active"], &status["lingering"]),
        (&json!(true), &json!(true), &json!(false)),
        "{status:#}"
    );

    // What a user edited stays, and is said.
    let made = read(&env, timer);
    let edited = made.replace("15min", "5min");
    put(&env, timer, &edited);
    for what in ["install", "uninstall"] {
        let left = service(&env, what);
        assert!(
            left["notes"]
                .to_string()
                .contains("recover-resume.timer was edited"),
            "{left:#}"
        );
        assert_eq!(read(&env, timer), edited);
    }
    assert!(
        !env.exists("../enabled"),
        "what is uninstalled is not started"
    );
    assert_eq!(files(&service(&env, "status")), ["missing", "edited"]);
    put(&env, timer, &made);
    service(&env, "install");
    let removed = service(&env, "uninstall");
    assert_eq!(
        removed["commands"],
        json!([
            "systemctl --user disable --now recover-resume.timer",
            "systemctl --user daemon-reload"
        ])
    );
    assert_eq!(home(&env), before);
    assert_eq!(service(&env, "uninstall")["changed"], false);

    // A user's own file is in the way.
    put(&env, timer, "[Timer]\nOnCalendar=daily\n");
    let before = home(&env);
    let refused = env.error(13, &["service", "install"]);
    assert_eq!(refused["code"], "already_exists", "{refused:#}");
    assert_eq!(service(&env, "uninstall")["changed"], false);
    assert_eq!(home(&env), before);
    assert!(!env.exists("../enabled"));
}

#[test]
fn a_crontab_keeps_every_byte_of_the_users() {
    let env = machine(&[("crontab", CRONTAB)]);
    for theirs in [None, Some("MAILTO=me\n# mine, at 5%\n0 5 * * * true\n")] {
        if let Some(theirs) = theirs {
            put(&env, "crontab", theirs);
        }
        let planned = env.json(0, &["--dry-run", "service", "install"]);
        let change = if theirs.is_some() {
            "modified"
        } else {
            "created"
        };
        assert_eq!(
            planned["plan"]["files"],
            json!([{"path": "crontab", "change": change}])
        );
        assert_eq!(read(&env, "crontab"), theirs.unwrap_or_default());
        let installed = service(&env, "install");
        assert_eq!(installed["manager"], "cron", "{installed:#}");
        let with = read(&env, "crontab");
        let program = env!("CARGO_BIN_EXE_recover");
        let line = format!(
            "\n@reboot {program} resume --interrupted --all-repos >/dev/null 2>&1\n*/15 * * * * {program} "
        );
        assert!(
            with.starts_with(theirs.unwrap_or_default()) && with.contains(&line),
            "{with}"
        );
        assert_eq!(service(&env, "install")["changed"], false);
        assert_eq!(service(&env, "status")["complete"], true);

        put(&env, "crontab", &with.replace("*/15", "*/5"));
        for what in ["install", "uninstall"] {
            let left = service(&env, what);
            assert!(
                left["notes"]
                    .to_string()
                    .contains("lines in the crontab were edited"),
                "{left:#}"
            );
            assert_eq!(read(&env, "crontab"), with.replace("*/15", "*/5"));
        }
        assert_eq!(service(&env, "status")["files"][0]["state"], "edited");
        put(&env, "crontab", &(with.clone() + "1 1 * * * false\n"));
        service(&env, "uninstall");
        assert_eq!(
            read(&env, "crontab"),
            theirs.unwrap_or_default().to_owned() + "1 1 * * * false\n"
        );
        put(&env, "crontab", &with);
        service(&env, "uninstall");
        assert_eq!(read(&env, "crontab"), theirs.unwrap_or_default());
        assert_eq!(env.exists("../crontab"), theirs.is_some());
    }
    // What cannot be read is neither empty nor replaced.
    std::fs::write(env.root().join("crontab"), b"# \xff\n").expect("works");
    env.error(1, &["service", "install"]);
    assert_eq!(
        std::fs::read(env.root().join("crontab")).expect("works"),
        b"# \xff\n"
    );
}

#[test]
fn an_agent_of_launchd_is_loaded_and_removed() {
    let env = machine(&[("launchctl", LAUNCHCTL)]);
    let before = home(&env);
    let installed = service(&env, "install");
    let plist = env
        .root()
        .join("home/Library/LaunchAgents/recover-resume.plist");
    let load = installed["commands"][0].as_str().unwrap_or_default();
    assert!(
        load.starts_with("launchctl bootstrap gui/") && load.ends_with("recover-resume.plist"),
        "{installed:#}"
    );
    let text = std::fs::read_to_string(&plist).expect("a property list");
    assert!(
        text.contains("<string>--interrupted</string><string>--all-repos</string>"),
        "{text}"
    );
    let parsed = env.sh(&format!(
        "python3 -c 'import plistlib,sys; print(plistlib.load(open(sys.argv[1],\"rb\"))[\"StartInterval\"])' '{}'",
        plist.display()
    ));
    assert_eq!(parsed.expect(0).stdout, "900\n");
    assert_eq!(service(&env, "install")["changed"], false);
    service(&env, "uninstall");
    assert_eq!((home(&env), env.exists("../enabled")), (before, false));
}

#[test]
fn where_nothing_starts_programs_that_is_said() {
    let env = machine(&[]);
    let error = env.error(1, &["service", "install"]);
    let hint = error["hint"].as_str().unwrap_or_default();
    assert!(
        hint.ends_with(" resume --interrupted --all-repos"),
        "{error:#}"
    );
    assert_eq!(service(&env, "status")["manager"], Value::Null);
    assert_eq!(service(&env, "uninstall")["changed"], false);
}

/// A user manager of systemd, which ends with the test, however that ends.
struct Systemd {
    child: Child,
    pid: PathBuf,
}

impl Drop for Systemd {
    fn drop(&mut self) {
        let pid = std::fs::read_to_string(&self.pid).unwrap_or_default();
        let _ = Command::new("kill").arg(pid.trim()).status();
        let _ = self.child.wait();
    }
}

/// One for this home folder, in a mount namespace of its own; `None` where that cannot be.
fn systemd(env: &TestEnv, runtime: &Path) -> Option<Systemd> {
    let begin = "group=/sys/fs/cgroup/recover-test-$$
        mount --make-rprivate / && umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && mkdir $group &&
        mount -t tmpfs none /run/systemd && mkdir /run/systemd/system && echo $$ > $group/cgroup.procs || exit
        /lib/systemd/systemd --user --log-target=null & echo $! > $XDG_RUNTIME_DIR/pid
        wait; echo $$ > /sys/fs/cgroup/cgroup.procs; sleep 0.3; find $group -depth -type d -exec rmdir {} +";
    let mut command = env.command("unshare");
    command
        .args(["-m", "sh", "-c", begin])
        .env("XDG_RUNTIME_DIR", runtime);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut manager = Systemd {
        child: command.spawn().ok()?,
        pid: runtime.join("pid"),
    };
    for _ in 0..100 {
        let mut asks = env.command("systemctl");
        asks.args(["--user", "show", "--property=Version"])
            .env("XDG_RUNTIME_DIR", runtime);
        if asks.output().is_ok_and(|answer| answer.status.success()) {
            return Some(manager);
        }
        if manager.child.try_wait().ok()?.is_some() {
            return None;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    None
}

/// The real one: what ended with the machine goes on by itself once the service is there, and nothing is left of it after.
#[test]
fn systemd_itself_resumes_a_run() {
    let mut env = TestEnv::repo();
    let runtime = tempfile::tempdir().expect("a folder");
    let Some(manager) = systemd(&env, runtime.path()) else {
        println!("skipped: no user manager of systemd can be started here");
        return;
    };
    env.set("XDG_RUNTIME_DIR", &runtime.path().display().to_string());
    let before = home(&env);
    env.put("../hang", "");
    let agent = "touch ../began; while [ -e ../hang ]; do sleep 0.1; done; echo done > work.txt";
    let mut run = env.recover_command(&["run", "--run", "night", "--", "sh", "-c", agent]);
    let mut run = run
        .env("RECOVER_TEST_BOOT", "earlier")
        .spawn()
        .expect("recover starts");
    until("an attempt", || env.exists("../began"));
    std::thread::sleep(Duration::from_millis(500));
    run.kill().expect("it is there");
    run.wait().expect("it ended");
    env.remove("../hang");
    let installed = service(&env, "install");
    assert_eq!(
        (&installed["manager"], &installed["changed"]),
        (&json!("systemd"), &json!(true))
    );
    let timers = env.sh("systemctl --user list-timers").stdout;
    assert!(timers.contains("recover-resume.timer"), "{timers}");
    // It comes a minute after the manager.
    env.sh("systemctl --user start --no-block recover-resume.service")
        .expect(0);
    until("it is resumed", || env.exists("work.txt"));
    let status = service(&env, "status");
    assert_eq!(
        (&status["complete"], &status["active"]),
        (&json!(true), &json!(true)),
        "{status:#}"
    );
    until("it has ended", || {
        let status = Ran::of(
            &env.recover_command(&["--json", "status"])
                .output()
                .expect("works"),
        );
        status.json()["run"]["status"] == "complete"
    });
    assert_eq!(service(&env, "install")["changed"], false);
    service(&env, "uninstall");
    assert_eq!(home(&env), before);
    let timers = env.sh("systemctl --user list-timers --all");
    assert!(!timers.stdout.contains("recover"), "{timers:?}");
    drop(manager);
}
