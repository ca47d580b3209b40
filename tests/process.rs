//! Supervised children: real processes, real pipes, no signals to this process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use recover::testing::process::{
    Exit, GroupEnd, Interrupts, Keep, ProcessId, Program, Show, SpawnErrorKind, Supervised,
};

fn shell(script: &str) -> Supervised {
    let mut spec = Supervised::new(Program::Shell(script.into()), "/");
    spec.show = Show::Nothing;
    spec.grace = Duration::from_secs(10);
    spec
}

fn run(spec: &Supervised) -> Exit {
    run_with_id(spec).0
}

/// Runs it and makes sure that nothing of its group is left.
fn run_with_id(spec: &Supervised) -> (Exit, Option<ProcessId>) {
    let mut id = None;
    let exit = spec
        .run(&Interrupts::disconnected(), |child| {
            id = Some(child.clone());
            Ok(())
        })
        .unwrap();
    if let Some(id) = &id {
        assert_eq!(id.end_group(Duration::ZERO).unwrap(), GroupEnd::Gone);
    }
    (exit, id)
}

fn text(exit: &Exit) -> (String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        text(exit.stdout.clone().into_bytes()),
        text(exit.stderr.clone().into_bytes()),
    )
}

#[test]
fn exit_code_and_output() {
    let exit = run(&shell("echo out; echo err >&2; exit 7"));
    assert_eq!((exit.exit_code, exit.signal.as_deref()), (Some(7), None));
    assert_eq!(text(&exit), ("out\n".to_owned(), "err\n".to_owned()));
    assert!(!exit.timed_out && !exit.leaked && !exit.detached);
    assert_eq!(
        (exit.cancelled, exit.spawn_error, exit.log_error),
        (None, None, None)
    );
}

#[test]
fn signals_have_names() {
    for name in ["KILL", "TERM", "SEGV", "ABRT", "PIPE"] {
        let exit = run(&shell(&format!("kill -{name} $$")));
        assert_eq!(
            (exit.exit_code, exit.signal),
            (None, Some(format!("SIG{name}")))
        );
    }
}

#[test]
fn folder_and_environment() {
    let mut spec = shell("pwd; echo $GIVEN; echo ${HOME-none}; cat");
    spec.cwd = "/usr".into();
    spec.env_set = vec![("GIVEN".into(), "a value".into())];
    spec.env_remove = vec!["HOME".into()];
    assert_eq!(text(&run(&spec)).0, "/usr\na value\nnone\n");
}

#[test]
fn bytes_need_not_be_text() {
    let exit = run(&shell(r"printf '\377\376\000ok'"));
    assert_eq!(exit.stdout.into_bytes(), b"\xff\xfe\0ok");
}

#[test]
fn what_cannot_be_started() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "no program").unwrap();
    let start = |program: &Path, cwd: &Path| {
        let mut spec = Supervised::new(Program::Argv(vec![OsString::from(program)]), cwd);
        spec.show = Show::Nothing;
        run(&spec).spawn_error.unwrap()
    };
    let error = start(Path::new("/no/such/program"), Path::new("/"));
    assert_eq!(error.kind, SpawnErrorKind::NotFound);
    assert!(error.message.contains("/no/such/program"), "{error:?}");
    assert_eq!(
        start(&file, Path::new("/")).kind,
        SpawnErrorKind::PermissionDenied
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(start(&file, Path::new("/")).kind, SpawnErrorKind::Other);
    let error = start(Path::new("/bin/true"), Path::new("/no/such/folder"));
    assert_eq!(error.kind, SpawnErrorKind::NotFound);
    assert!(error.message.contains("/no/such/folder"), "{error:?}");
    assert_eq!(
        run(&Supervised::new(Program::Argv(Vec::new()), "/"))
            .spawn_error
            .unwrap()
            .kind,
        SpawnErrorKind::NotFound
    );
}

#[test]
fn a_child_need_not_read_its_input() {
    let mut spec = shell("sleep 0.1; echo done");
    spec.stdin = Some(vec![b'x'; 10 << 20]);
    assert_eq!(text(&run(&spec)).0, "done\n");
    let mut spec = shell("exec <&-; sleep 0.1; echo closed");
    spec.stdin = Some(vec![b'x'; 10 << 20]);
    assert_eq!(text(&run(&spec)).0, "closed\n");
}

#[test]
fn a_long_input_is_read_slowly_and_whole() {
    let mut spec =
        shell("for i in 1 2 3; do sleep 0.05; head -c 1000; done >/dev/null; cat | wc -c");
    spec.stdin = Some(vec![b'x'; 10 << 20]);
    let left: usize = text(&run(&spec)).0.trim().parse().unwrap();
    // `head` may have read ahead.
    assert!(
        ((10 << 20) - 3 * (1 << 16)..10 << 20).contains(&left),
        "{left}"
    );
    let mut echo = shell("cat");
    echo.stdin = Some((0..10_u32 << 20).map(|n| n.to_le_bytes()[1]).collect());
    echo.keep = Keep {
        head: 20 << 20,
        tail: 0,
    };
    assert_eq!(run(&echo).stdout.into_bytes(), echo.stdin.unwrap());
}

#[test]
fn a_deadline_ends_the_whole_group() {
    let mut spec = shell("sleep 1000 & (sleep 1000 | sleep 1000) & echo up; wait");
    spec.deadline = Some(Duration::from_millis(300));
    let start = Instant::now();
    let exit = run(&spec);
    assert!(exit.timed_out && !exit.leaked);
    assert_eq!(exit.signal.as_deref(), Some("SIGTERM"));
    assert_eq!(text(&exit).0, "up\n");
    assert!(
        exit.duration >= Duration::from_millis(300) && start.elapsed() < Duration::from_secs(5)
    );
}

#[test]
fn a_child_may_clean_up_at_the_deadline() {
    let mut spec = shell("trap 'echo cleaning; exit 3' TERM; sleep 1000 & wait");
    spec.deadline = Some(Duration::from_millis(300));
    let exit = run(&spec);
    assert_eq!((exit.timed_out, exit.exit_code), (true, Some(3)));
    assert_eq!(text(&exit).0, "cleaning\n");
}

#[test]
fn who_ignores_sigterm_is_killed() {
    let mut spec = shell("trap '' TERM; while :; do sleep 0.1; done");
    spec.deadline = Some(Duration::from_millis(200));
    spec.grace = Duration::from_millis(300);
    let exit = run(&spec);
    assert_eq!(
        (exit.timed_out, exit.signal.as_deref()),
        (true, Some("SIGKILL"))
    );
    assert!(exit.duration >= Duration::from_millis(500) && exit.duration < Duration::from_secs(5));
}

#[test]
fn who_is_stopped_ends_too() {
    let mut spec = shell("kill -STOP $$");
    spec.deadline = Some(Duration::from_millis(200));
    assert_eq!(run(&spec).signal.as_deref(), Some("SIGTERM"));
}

#[test]
fn what_is_left_behind_is_ended() {
    let start = Instant::now();
    let exit = run(&shell("sleep 1000 & echo done"));
    assert_eq!((exit.exit_code, exit.leaked), (Some(0), true));
    assert!(exit.duration < Duration::from_secs(1));
    let exit = run(&shell("sleep 1000 >/dev/null 2>&1 & echo done"));
    assert_eq!((exit.exit_code, exit.leaked), (Some(0), true));
    let mut stubborn = shell("(trap '' TERM; while :; do sleep 0.1; done) & sleep 0.1");
    stubborn.grace = Duration::from_millis(200);
    assert!(run(&stubborn).leaked);
    assert!(start.elapsed() < Duration::from_secs(8));
}

#[test]
fn what_ends_soon_by_itself_is_no_leak() {
    let exit = run(&shell("(sleep 0.05; echo late) & echo early"));
    assert!(!exit.leaked);
    assert_eq!(text(&exit).0, "early\nlate\n");
}

#[test]
fn a_daemon_that_keeps_the_pipe_open_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = format!(
        "setsid sh -c 'echo $$ >{}; exec sleep 60' & sleep 0.3; echo done",
        file.display()
    );
    let start = Instant::now();
    let exit = run(&shell(&script));
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(
        (exit.exit_code, exit.leaked, exit.detached),
        (Some(0), false, true)
    );
    assert_eq!(text(&exit).0, "done\n");
    let pid = fs::read_to_string(file).unwrap();
    assert!(Path::new(&format!("/proc/{}", pid.trim())).exists() || cfg!(not(target_os = "linux")));
    run(&shell(&format!("kill {pid}")));
}

#[test]
fn a_daemon_that_floods_the_pipe_does_not_hold_us_up() {
    let exit = run(&shell("setsid yes & sleep 0.2; echo done >&2"));
    assert!(exit.detached);
    assert_eq!(text(&exit).1, "done\n");
}

#[test]
fn a_flood_is_bounded_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec =
        shell("echo first; yes | head -c 50000000; echo last; sleep 0.5; echo complaint >&2");
    let log = folder.path().join("log");
    spec.log = Some(Arc::new(File::create(&log).unwrap()));
    spec.log_limit = 100_000;
    spec.keep = Keep {
        head: 1000,
        tail: 2000,
    };
    let exit = run(&spec);
    assert_eq!(
        (exit.stdout.total, exit.stdout.omitted),
        (50_000_011, 49_997_011)
    );
    assert!(
        exit.stdout.head.starts_with(b"first\ny\n") && exit.stdout.tail.ends_with(b"y\nlast\n")
    );
    let log = fs::read_to_string(log).unwrap();
    assert!(log.len() < 100_100, "{}", log.len());
    assert!(log.starts_with("first\ny\n") && log.contains("last\n") && log.contains("complaint\n"));
    let markers: Vec<&str> = log
        .lines()
        .filter(|line| line.starts_with("[recover: "))
        .collect();
    let [marker] = markers[..] else {
        panic!("{markers:?}")
    };
    let omitted: usize = marker.split(' ').nth(1).unwrap().parse().unwrap();
    assert_eq!(
        omitted + log.len() - marker.len() - 1,
        50_000_011 + "complaint\n".len()
    );
}

#[test]
fn the_log_has_both_streams_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec =
        shell("for i in 1 2 3; do echo out $i; sleep 0.05; echo err $i >&2; sleep 0.05; done");
    let log = folder.path().join("log");
    spec.log = Some(Arc::new(File::create(&log).unwrap()));
    assert_eq!(run(&spec).exit_code, Some(0));
    assert_eq!(
        fs::read_to_string(&log).unwrap(),
        "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"
    );
}

#[test]
fn the_log_is_up_to_date_while_the_child_pauses() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let script = format!(
        "head -c 900 /dev/zero; echo now; sleep 0.3; tail -n 1 {} >&2",
        log.display()
    );
    let mut spec = shell(&script);
    spec.log = Some(Arc::new(File::create(&log).unwrap()));
    spec.log_limit = 1000;
    assert!(text(&run(&spec)).1.ends_with("now\n"));
}

#[test]
fn a_log_that_cannot_be_written_does_not_disturb_the_child() {
    if Path::new("/dev/full").exists() {
        let mut spec = shell("echo out");
        spec.log = Some(Arc::new(
            File::options().write(true).open("/dev/full").unwrap(),
        ));
        let exit = run(&spec);
        assert_eq!((exit.exit_code, text(&exit).0.as_str()), (Some(0), "out\n"));
        assert!(exit.log_error.is_some());
    }
}

#[test]
fn a_child_that_cannot_be_recorded_is_killed() {
    let mut id = None;
    let result = shell("sleep 1000 & wait").run(&Interrupts::disconnected(), |child| {
        assert!(child.is_alive());
        id = Some(child.clone());
        Err(io::Error::other("ledger"))
    });
    assert_eq!(result.unwrap_err().to_string(), "ledger");
    let id = id.unwrap();
    assert!(!id.is_alive());
    id.end_group(Duration::from_secs(5)).unwrap();
    assert_eq!(id.end_group(Duration::ZERO).unwrap(), GroupEnd::Gone);
}
