//! Completions of what only `recover` knows: asked of the hidden command, and through the shells' own completion.

use std::time::{Duration, Instant};

use crate::env::TestEnv;
use crate::morning::manual_fix::failed_run;
use crate::terminal::Terminal;

/// What bash completes at the end of a line.
fn completed(env: &TestEnv, line: &str) -> Vec<String> {
    let script = format!(
        "PATH='{bin}':$PATH
         source completions.bash
         COMP_LINE={line} COMP_POINT=${{#COMP_LINE}}
         read -ra COMP_WORDS <<< \"${{COMP_LINE//=/ = }}\"
         [[ $COMP_LINE == *' ' ]] && COMP_WORDS+=('')
         COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
         function=$(complete -p recover | sed 's/.*-F \\([a-z_]*\\) .*/\\1/')
         $function recover \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        bin = std::path::Path::new(env!("CARGO_BIN_EXE_recover"))
            .parent()
            .expect("a folder")
            .display(),
        line = shlex::try_quote(line).expect("no NUL"),
    );
    let output = env
        .command("bash")
        .args(["--norc", "-c", &script])
        .output()
        .expect("bash starts");
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(str::to_owned)
        .filter(|word| !word.is_empty())
        .collect()
}

/// Whether this shell is there; CI has each.
fn has(env: &TestEnv, shell: &str) -> bool {
    let found = env.sh(&format!("command -v {shell}")).code == 0;
    if !found {
        assert!(std::env::var_os("CI").is_none(), "{shell} is missing");
        eprintln!("skipped: {shell} is missing");
    }
    found
}

/// A name that would do something, were it read as a shell reads a line.
const ODD: &str = "$(touch${IFS}PWNED)`touch PWNED`;touch PWNED";

/// A run that failed, and the completions of a shell beside the work tree; the path where `recover` is found first.
fn with_script(shell: &str, file: &str) -> (TestEnv, String) {
    let mut env = failed_run();
    env.write(
        &format!("../completions/{file}"),
        env.recover(&["completions", shell]).expect(0).stdout,
    );
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_recover"))
        .parent()
        .expect("a folder")
        .display()
        .to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").expect("a path"));
    env.set("PATH", &path);
    (env, path)
}

/// A shell at a terminal: `setup` is sourced, and Ctrl-T writes the line as it stands to `../line`.
struct Shell<'a> {
    env: &'a TestEnv,
    terminal: Terminal,
}

impl<'a> Shell<'a> {
    fn begin(env: &'a TestEnv, words: &[&str], setup: &str) -> Option<Self> {
        env.write("../setup", setup);
        // A terminal that can only go on, so that what is shown can be read.
        let mut terminal =
            Terminal::running(env, words, (200, 60), &[("TERM", "dumb"), ("PS1", "> ")])?;
        terminal.press(". ../setup && echo is-''ready\n");
        terminal.expect("is-ready");
        Some(Self { env, terminal })
    }

    /// What a line becomes by Tab.
    #[track_caller]
    fn becomes(&mut self, line: &str) -> String {
        let file = self.env.root().join("line");
        let _ = std::fs::remove_file(&file);
        self.terminal.press(&format!("\u{15}{line}\t\u{14}"));
        let begun = Instant::now();
        loop {
            if let Some(text) = std::fs::read_to_string(&file)
                .ok()
                .filter(|text| text.ends_with('\n'))
            {
                return text.trim_end().to_owned();
            }
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "{line}\n{}",
                self.terminal.said()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until Tab at the end of a line that could go on in several ways has shown this. Nothing else is typed
    /// meanwhile: a shell that has keys to read shows no list.
    #[track_caller]
    fn shows(&mut self, line: &str, text: &str) {
        let from = self.terminal.said().len();
        self.terminal.press(&format!("\u{15}{line}\t"));
        self.terminal.expect_after(from, text);
    }

    fn end(mut self) {
        self.terminal.press("\u{15}exit\n");
        let (code, said) = self.terminal.end();
        assert!(
            code == 0 && !said.contains("not found") && !said.contains("rror:"),
            "{code}: {said}"
        );
    }
}

/// What completes the last word of a line.
pub fn asked(env: &TestEnv, line: &[&str]) -> Vec<String> {
    let mut command = env.recover_command(&["--", "recover"]);
    let ran = crate::env::Ran::of(
        &command
            .args(line)
            .env("COMPLETE", "zsh")
            .output()
            .expect("recover starts"),
    );
    assert!(ran.stderr.is_empty(), "{}", ran.stderr);
    let words = ran.expect(0).stdout;
    words
        .lines()
        .map(|line| line.split('\t').next().unwrap_or_default().to_owned())
        .collect()
}

// The contract: runs, checkpoints and strategies are completed, and nothing is said where there are none.
#[test]
fn words_come_a_line_each() {
    let env = failed_run();
    assert_eq!(asked(&env, &["resume", ""]), ["r 1"]);
    let checkpoints = asked(&env, &["rollback", "--to", ""]);
    assert_eq!(&checkpoints[..3], ["latest", "good", "initial"]);
    assert!(
        checkpoints.len() > 4 && checkpoints[3].starts_with("ckpt_"),
        "{checkpoints:?}"
    );
    assert!(asked(&env, &["resume", "--strategy", ""]).contains(&"rollback_and_retry".to_owned()));

    let empty = TestEnv::plain();
    for line in [["resume", ""], ["status", "--run"]] {
        assert!(
            asked(&empty, &[&line[..], &[""]].concat())
                .iter()
                .all(|word| word.starts_with('-')),
            "{line:?}"
        );
    }
    empty.write(".ultraplan/recover.toml", "not toml");
    assert_eq!(asked(&empty, &["status", "--run", ""]), [] as [&str; 0]);
    assert!(!empty.exists(".ultraplan/state"), "nothing is made");
}

#[test]
fn bash_completes_them() {
    let env = failed_run();
    if !has(&env, "bash") {
        return;
    }
    env.write(
        "completions.bash",
        env.recover(&["completions", "bash"]).expect(0).stdout,
    );
    let checkpoint = env.json(0, &["checkpoint", "list"])["checkpoints"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(completed(&env, "recover resume "), ["r\\ 1"]);
    assert_eq!(completed(&env, "recover status --run "), ["r\\ 1"]);
    assert_eq!(completed(&env, "recover --run="), ["r\\ 1"]);
    assert!(completed(&env, "recover rollback --to ").contains(&checkpoint));
    assert_eq!(completed(&env, "recover rollback --to la"), ["latest"]);
    assert_eq!(
        completed(
            &env,
            &format!("recover checkpoint diff latest {checkpoint}")
        ),
        [checkpoint.as_str()]
    );
    assert_eq!(
        completed(&env, "recover -C . checkpoint show --patch go"),
        ["good"]
    );
    assert_eq!(
        completed(&env, "recover resume --strategy rol"),
        ["rollback_and_retry"]
    );
    // The value of --feedback goes on behind its name.
    env.script("checks/all.sh", "true");
    for line in ["--feedback test=./ch", "--feedback=test=./ch"] {
        assert_eq!(
            completed(&env, &format!("recover run {line}")),
            ["./checks/"]
        );
    }
    assert_eq!(
        completed(&env, "recover run --feedback test=./checks/"),
        ["./checks/all.sh"]
    );
    assert_eq!(completed(&env, "recover run --feedback ty"), ["typecheck="]);
    // Everything else is clap's.
    assert_eq!(completed(&env, "recover rollb"), ["rollback"]);
    assert!(completed(&env, "recover resume --str").contains(&"--strategy".to_owned()));
    assert!(!completed(&env, "recover run -- ").contains(&"r\\ 1".to_owned()));
    assert!(!completed(&env, "recover resume --instructions ").contains(&"r\\ 1".to_owned()));
    // From another folder.
    let elsewhere = format!("recover -C {} resume ", env.work().display());
    std::fs::create_dir(env.root().join("other")).unwrap();
    assert_eq!(completed(&env, &format!("{elsewhere}r")), ["r\\ 1"]);
    // A name is a name, whatever it says.
    env.json(0, &["checkpoint", "create", "--run", ODD]);
    let offered = completed(&env, "recover resume ");
    assert!(
        offered.iter().any(|word| word.starts_with(r"\$\(touch")),
        "{offered:?}"
    );
    assert!(!env.exists("PWNED"));
}

#[test]
fn bash_completes_them_at_a_terminal() {
    let (env, _) = with_script("bash", "recover.bash");
    if !has(&env, "bash") {
        return;
    }
    env.json(0, &["checkpoint", "create", "--run", ODD]);
    let setup = r#". ../completions/recover.bash
        bind -x '"\C-t": printf "%s\n" "$READLINE_LINE" > ../line'"#;
    let Some(mut shell) = Shell::begin(&env, &["bash", "--norc", "-i"], setup) else {
        return;
    };
    for (line, becomes) in [
        ("recover roll", "recover rollback"),
        ("recover resume r", r"recover resume r\ 1"),
        // A command behind --, then files.
        ("recover run -- uniq", "recover run -- uniq"),
        ("recover run -- cat a.t", "recover run -- cat a.txt"),
        (
            "recover run --feedback test=./a.t",
            "recover run --feedback test=./a.txt",
        ),
        (
            "recover run --feedback=test=./a.t",
            "recover run --feedback=test=./a.txt",
        ),
        ("recover resume 'r", "recover resume 'r 1'"),
        (r"recover resume r\ ", r"recover resume r\ 1"),
        ("recover --run=r", r"recover --run=r\ 1"),
        // With the run that is named before.
        (
            "recover --run 'r 1' rollback --to la",
            "recover --run 'r 1' rollback --to latest",
        ),
        (
            r"recover --run=r\ 1 rollback --to la",
            r"recover --run=r\ 1 rollback --to latest",
        ),
        (
            r"recover resume \$",
            r"recover resume \$\(touch\$\{IFS\}PWNED\)\`touch\ PWNED\`\;touch\ PWNED",
        ),
    ] {
        assert_eq!(shell.becomes(line), becomes, "{line}");
    }
    // What is listed says what each is.
    shell
        .terminal
        .press("\u{15}bind 'set show-all-if-ambiguous on'\n");
    shell.shows("recover --run 'r 1' rollback --to ", "(before the run)");
    shell.end();
    assert!(!env.exists("PWNED"));
}

#[test]
fn zsh_completes_them_at_a_terminal() {
    let (env, _) = with_script("zsh", "_recover");
    if !has(&env, "zsh") {
        return;
    }
    env.json(0, &["checkpoint", "create", "--run", ODD]);
    env.json(0, &["checkpoint", "create", "--run", r"a\b:c"]);
    let setup = "fpath=(${PWD:h}/completions $fpath); autoload -Uz compinit; compinit -u -D; setopt nobeep
        written() { print -r -- $BUFFER > ../line }; zle -N written; bindkey '^T' written; bindkey '^U' kill-whole-line";
    let Some(mut shell) = Shell::begin(&env, &["zsh", "-f", "-i"], setup) else {
        return;
    };
    for (line, becomes) in [
        ("recover roll", "recover rollback"),
        ("recover resume --str", "recover resume --strategy"),
        ("recover resume r", r"recover resume r\ 1"),
        ("recover resume 'r", "recover resume 'r 1'"),
        ("recover --run=r", r"recover --run=r\ 1"),
        ("recover resume a", r"recover resume a\\b:c"),
        (
            "recover resume --strategy rol",
            "recover resume --strategy rollback_and_retry",
        ),
        // With what was said before the command.
        (
            "recover --run 'r 1' rollback --to la",
            "recover --run 'r 1' rollback --to latest",
        ),
        (
            r"recover --run=r\ 1 checkpoint diff la",
            r"recover --run=r\ 1 checkpoint diff latest",
        ),
        ("recover -C / resume r", "recover -C / resume r"),
        (
            r"recover resume \$",
            r"recover resume \$\(touch\$\{IFS\}PWNED\)\`touch\ PWNED\`\;touch\ PWNED",
        ),
        ("recover run -- cat a.t", "recover run -- cat a.txt"),
        (
            "recover run --feedback test=./a.t",
            "recover run --feedback test=./a.txt",
        ),
        // The command that is run is completed as any other, and only behind its --.
        (
            "recover run -- recover roll",
            "recover run -- recover rollback",
        ),
        ("recover resume a.t", "recover resume a.t"),
    ] {
        assert_eq!(shell.becomes(line), becomes, "{line}");
    }
    for (line, shown) in [
        (
            "recover ",
            "manual-fix       -- Fix a failed run by hand: edit, verify, continue",
        ),
        (
            "recover resume --",
            "--restart           -- Start again from iteration 1",
        ),
        ("recover resume ", "-- paused, started "),
        ("recover --run 'r 1' rollback --to ", "-- before the run"),
        (
            "recover --run 'r 1' resume --strategy ",
            "-- Make changes yourself, verify them, then continue",
        ),
    ] {
        shell.shows(line, shown);
    }
    // Where it is not found, nothing is said.
    shell.terminal.press("\u{15}path=(/usr/bin /bin)\n");
    assert_eq!(shell.becomes("recover resume r"), "recover resume r");
    shell.end();
    assert!(!env.exists("PWNED"));
}

#[test]
fn fish_completes_them() {
    let (env, path) = with_script("fish", "recover.fish");
    if !has(&env, "fish") {
        return;
    }
    env.json(0, &["checkpoint", "create", "--run", ODD]);
    let with = |path: &str, line: &str| {
        let mut fish = env.command("fish");
        fish.env("PATH", path).args([
            "-N",
            "-c",
            "source ../completions/recover.fish; complete -C $argv[1]",
            line,
        ]);
        let output = fish.output().expect("fish starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.is_empty(), "{line}: {stderr}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for (line, offered) in [
        (
            "recover man",
            "manual-fix\tFix a failed run by hand: edit, verify, continue\n",
        ),
        (
            "recover resume --rest",
            "--restart\tStart again from iteration 1\n",
        ),
        (
            "recover resume --str",
            "--strategy\tHow to resume, such as ",
        ),
        ("recover resume ", "r 1\tpaused, started "),
        ("recover status --run ", "r 1\tpaused, started "),
        (
            "recover --run 'r 1' rollback --to ",
            "latest\tthe latest\ngood\tthe last good one\ninitial\tbefore the run\nckpt_",
        ),
        (
            r"recover --run=r\ 1 checkpoint diff ",
            "latest\tthe latest\n",
        ),
        (
            "recover --run 'r 1' resume --strategy man",
            "manual_then_continue\tMake changes yourself, ",
        ),
        (
            "recover --resume --strategy rol",
            "rollback_and_retry\tUndo the changes of iteration 2, ",
        ),
        ("recover resume ", ODD),
        ("recover run --feedback test=./a.t", "test=./a.txt\n"),
        ("recover run -- cat a.t", "a.txt\n"),
    ] {
        let said = with(&path, line);
        assert!(said.contains(offered), "{line}: {said}");
    }
    assert_eq!(with(&path, "recover -C / resume r"), "");
    for line in ["recover resume -- ", "recover run -- "] {
        assert!(!with(&path, line).contains("paused"), "{line}");
    }
    // Where it is not found, nothing is said.
    assert!(!with("/usr/bin:/bin", "recover resume r").contains("r 1"));
    assert!(!env.exists("PWNED"));
}

/// A run is a word of its own, too; a series is named by its name.
#[test]
fn runs_and_series_are_offered_where_they_are_named() {
    let env = failed_run();
    if !has(&env, "bash") {
        return;
    }
    env.recover(&["run", "--series", "night", "--", "true"])
        .expect(0);
    env.write(
        "completions.bash",
        env.recover(&["completions", "bash"]).expect(0).stdout,
    );
    for command in [
        "discard", "status", "report", "browse", "log", "bisect", "close",
    ] {
        assert_eq!(
            completed(&env, &format!("recover {command} nig")),
            ["night"],
            "{command}"
        );
    }
    assert_eq!(completed(&env, "recover status --series n"), ["night"]);
}
