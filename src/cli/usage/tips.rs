//! Words and options that other tools, or other commands of this one, have for what is called otherwise here.

/// Of which commands (`""` is `recover` alone; none: of all), what is typed (none: anything), and what is meant, in
/// which `WORD` is what was typed.
type Tip = (
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
);

/// The first row that fits: in a table those of one command come before those of all.
pub(super) fn of(table: &[Tip], command: &str, typed: &str) -> Option<String> {
    let fits = |(commands, words, _): &&Tip| {
        (commands.is_empty() || commands.contains(&command))
            && (words.is_empty() || words.contains(&typed))
    };
    let (.., meant) = table.iter().find(fits)?;
    Some(meant.replace("WORD", typed))
}

/// Words in a command's place.
pub(super) const COMMANDS: &[Tip] = &[
    (
        &["hook"],
        &["add", "enable", "create", "setup"],
        "'recover hook install AGENT' installs it",
    ),
    (
        &["hook"],
        &["claude", "codex", "gemini", "opencode", "git"],
        "'recover hook install WORD' installs it",
    ),
    (
        &["plugin"],
        &["add", "enable", "create", "setup"],
        "'recover plugin install AGENT' installs it",
    ),
    (
        &["plugin"],
        &["claude", "codex", "gemini", "opencode"],
        "'recover plugin install WORD' installs it",
    ),
    (
        &["service"],
        &["start", "enable", "add", "create", "setup"],
        "'recover service install' installs it; it starts by itself then",
    ),
    (
        &["hook", "plugin", "service"],
        &["rm", "remove", "delete", "disable", "stop"],
        "'uninstall' removes it",
    ),
    (
        &["hook", "plugin", "service"],
        &["ls", "list", "show"],
        "'status' shows what is installed",
    ),
    (
        &["remote"],
        &["add"],
        "'git remote add NAME URL' adds one; 'recover remote check --remote NAME' tries it",
    ),
    (
        &["remote"],
        &["ls", "list", "show"],
        "'recover runs --remote NAME' lists the runs that lie there",
    ),
    (
        &["remote"],
        &["rm", "remove", "delete"],
        "'recover remote prune --remote NAME' removes runs from there",
    ),
    (
        &["remote"],
        &["pull"],
        "'recover remote fetch --remote NAME' fetches what is new there",
    ),
    (
        &["checkpoint"],
        &["add", "new", "save", "take"],
        "'recover checkpoint create' takes one",
    ),
    (
        &["checkpoint"],
        &["ls"],
        "'recover checkpoint list' lists them",
    ),
    (
        &["checkpoint"],
        &["rm", "remove", "delete", "clean", "gc"],
        "'recover checkpoint prune' removes old checkpoints",
    ),
    (
        &[""],
        &["abort", "cancel", "stop", "end", "kill", "pause"],
        "'recover close' closes a run that you are done with; Ctrl-C stops one at work",
    ),
    (
        &[""],
        &["history", "events", "logs", "blame"],
        "'recover log' shows what happened",
    ),
    (
        &[""],
        &["watch", "attach", "tail", "follow"],
        "'recover status --watch' shows a run at work, 'recover log --follow' what happens as lines",
    ),
    (
        &[""],
        &["reset", "revert", "back"],
        "'recover rollback' goes back to a checkpoint, 'recover discard' takes a whole run back",
    ),
    (
        &[""],
        &["restore", "checkout"],
        "'recover checkpoint restore SEL --path FILE' restores files of a checkpoint",
    ),
    (
        &[""],
        &["drop", "trash", "reject"],
        "'recover discard' takes a whole run back; recover undo brings it back",
    ),
    (
        &[""],
        &["commit", "merge", "apply", "keep", "add", "approve"],
        "'recover accept' commits what a run did",
    ),
    (
        &[""],
        &["branch", "switch"],
        "'recover accept --branch B' commits what a run did on a branch of its own",
    ),
    (
        &[""],
        &["worktree"],
        "'recover run --isolated' works in a work tree of its own, which recover accept merges",
    ),
    (
        &[""],
        &["rm", "remove", "delete"],
        "'recover forget' removes runs for good, with their checkpoints",
    ),
    (&[""], &["ls", "ps", "top"], "'recover runs' lists the runs"),
    (
        &[""],
        &["version"],
        "'recover --version' prints the version",
    ),
    (
        &[""],
        &["save", "snapshot", "stash", "tag", "create"],
        "'recover checkpoint create' records the work tree as it is, 'recover checkpoint restore' brings it back",
    ),
    (
        &[""],
        &["continue", "retry", "rebase"],
        "'recover resume' takes a failed or interrupted run up again",
    ),
    (
        &[""],
        &["clean", "gc", "prune"],
        "'recover checkpoint prune' removes old checkpoints",
    ),
    (
        &[""],
        &["start", "exec"],
        "'recover run -- CMD' runs a command under supervision",
    ),
    (
        &[""],
        &[
            "aider", "claude", "codex", "copilot", "gemini", "opencode", "qwen",
        ],
        "'recover run --agent WORD --prompt TEXT' starts it under supervision",
    ),
    (
        &[""],
        &["fix", "edit"],
        "'recover manual-fix' hands a failed run over to you",
    ),
    (
        &[""],
        &["push", "pull", "fetch", "clone"],
        "'recover remote' shares runs through a git server",
    ),
    (
        &[""],
        &["ui", "tui", "gui", "dashboard"],
        "'recover browse' shows runs with their diffs and logs",
    ),
    (
        &[""],
        &["web", "html"],
        "'recover report -o report.html' writes a page",
    ),
    (
        &[""],
        &["pr"],
        "'recover report --format pr' writes title and body of a pull request",
    ),
    (
        &[""],
        &["what", "why", "explain", "cost", "usage", "info"],
        "'recover status -v' says what became of a run, why, and what it cost",
    ),
    (
        &[""],
        &["install", "setup", "configure"],
        "'recover init' writes the project's configuration",
    ),
    (
        &[""],
        &["guide", "manual", "docs", "tutorial"],
        "'man recover-guide' shows the guide; where no man pages are installed, 'recover man DIR' writes them into DIR",
    ),
    (
        &[""],
        &["update", "upgrade"],
        "recover does not update itself: README.md (Install) has how a newer version is installed",
    ),
    (
        &[""],
        &["uninstall"],
        "'recover forget --all' removes what is recorded here; README.md (Uninstall) has how the program is removed",
    ),
];

/// Options that are not there; `-3` counts as `--tail`.
pub(super) const OPTIONS: &[Tip] = &[
    (
        &["log"],
        &["-f"],
        "'--follow' prints new events as they happen",
    ),
    (
        &["status"],
        &["-f", "--follow", "-w"],
        "'--watch' refreshes it until Ctrl-C",
    ),
    (
        &["log", "runs", "checkpoint list"],
        &[
            "-n", "--tail", "--last", "--lines", "--since", "--until", "--after", "--before",
        ],
        "'--limit N' shows the newest N",
    ),
    (
        &["undo", "redo"],
        &["-l", "--list"],
        "'recover log' lists what was done, and what was reverted",
    ),
    (
        &["config"],
        &["-l", "--list"],
        "'recover config' alone lists every setting with its value",
    ),
    (
        &["log", "status", "report"],
        &["-p", "--patch", "--stat", "--oneline"],
        "'recover diff A B' lists what changed between two checkpoints, with --patch line by line",
    ),
    (
        &["checkpoint diff", "checkpoint show"],
        &["-p", "-u"],
        "'--patch' shows the changes line by line",
    ),
    (
        &["checkpoint diff", "checkpoint show"],
        &["--stat", "--name-only", "--name-status"],
        "leave it out: without --patch the files that changed are listed",
    ),
    (
        &["rollback"],
        &["--all"],
        "'--full' restores the state before the first attempt; 'recover discard' takes a whole run back",
    ),
    (
        &["checkpoint prune"],
        &["--all"],
        "'--keep-last 0' removes what nothing needs any more (--dry-run lists it); 'recover forget RUN' removes a whole run",
    ),
    (
        &["report"],
        &["--html", "--pr", "--md", "--markdown", "--otlp"],
        "'--format' takes html, pr, md, json and otlp",
    ),
    (
        &["run", "resume", "worker"],
        &["--check", "--checks", "--test", "--verify", "--validate"],
        "a check is given with '--feedback NAME=CMD', such as --feedback test='cargo test'",
    ),
    (
        &["run", "resume"],
        &["-p", "--model"],
        "'--prompt TEXT' is for --agent; flags of an agent go after --, behind its name",
    ),
    (
        &["run", "resume"],
        &["-i", "--loop", "--loops", "--repeat", "--times"],
        "'--iterations N' makes N rounds of work, '--attempts N' tries each until it passes",
    ),
    (
        &["run", "resume"],
        &["--no-retry", "--no-retries", "--once"],
        "'--attempts 1' tries once",
    ),
    (
        &["run", "resume"],
        &["--budget", "--cost", "--max-cost", "--max-budget"],
        "max_cost_usd, below [retry] in .ultraplan/recover.toml, limits what a run costs; max_tokens its tokens",
    ),
    (
        &["run"],
        &["-j", "--jobs", "--parallel", "--workers"],
        "'--lanes N', with --tasks FILE, works through the tasks with N runs at once",
    ),
    (
        &["run"],
        &["-w", "--worktree"],
        "'--isolated' works in a work tree of its own",
    ),
    (
        &["run", "resume"],
        &["--background", "--detach", "-d"],
        "a shell does that: nohup recover run … &",
    ),
    (
        &["doctor"],
        &["--fix"],
        "'--repair' mends what is safe to mend",
    ),
    (
        &[],
        &["--output", "--format"],
        "'--json' prints the answer as one JSON document",
    ),
    (&[], &["-n"], "'--dry-run' shows what would be done"),
    (
        &[],
        &["-f", "--force"],
        "'--yes' answers every question; where edits or commits are in the way, the refusal names the flag",
    ),
    (
        &[],
        &["-l", "--list"],
        "'recover runs' lists the runs, 'recover list' the checkpoints",
    ),
    (&[], &["--name", "--id"], "'--run ID' names a run"),
    (&[], &["--dir", "--cwd"], "'-C DIR' works in another folder"),
    (
        &[],
        &["--hard", "--soft", "--mixed"],
        "leave it out: files, index and the run's own commits are restored together, and recover undo reverts that",
    ),
];

/// Words where a command takes none, or no more.
pub(super) const WORDS: &[Tip] = &[
    (
        &["checkpoint create"],
        &[],
        "it is described with -m: recover checkpoint create -m TEXT, with quotes around several words",
    ),
    (
        &["config"],
        &[],
        "'recover config' lists every setting with its value; one is set in .ultraplan/recover.toml",
    ),
    (
        &["classify"],
        &[],
        "it reads what a command printed: recover classify < FILE",
    ),
    (
        &[
            "remote fetch",
            "remote push",
            "remote status",
            "remote claim",
            "remote release",
            "remote prune",
            "remote check",
        ],
        &[],
        "a remote is named with --remote NAME, a run with --run RUN",
    ),
    (&["accept", "discard"], &[], "it is about one run at a time"),
    (&["runs"], &[], "of one run: recover status WORD"),
    (
        &["undo", "redo"],
        &[],
        "'recover undo' and 'recover redo' are about the last operation here; 'recover rollback --to @N' goes to a checkpoint, \
         'recover discard RUN' reverts a whole run",
    ),
];
