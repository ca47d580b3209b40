//! The examples of `--help` and the man pages: what to type, by command. Each of them is parsed in a test.

/// What to type, and what it does.
pub(super) type Example = (&'static str, &'static str);

/// A table of examples: the words of a command after `recover`, each line to type with what it does.
macro_rules! examples {
    ($($command:literal { $($line:literal => $meaning:literal,)+ })+) => {
        &[$(($command, &[$(($line, $meaning)),+])),+]
    };
}

/// The examples of all commands.
const ALL: &[(&str, &[Example])] = examples! {
    "run" {
        "recover run --feedback test='cargo test' -- claude -p \"Make the tests pass\""
            => "run an agent, and judge each attempt by a check",
        "recover run --agent codex --prompt-file task.md --iterations 6"
            => "start a known agent, six times in a row",
        "recover run --attempts 5 --timeout 30m -- make deploy"
            => "repeat a command until it exits with 0, five times at most",
        "recover run --until 'grep -q DONE plan.md' -- ./loop.sh"
            => "go on until another command passes",
        "recover run --tasks TASKS.md --agent claude"
            => "work through a checklist, each task with its own attempts",
        "recover run --isolated --agent claude --prompt-file task.md"
            => "in a work tree of its own, while you go on in yours",
        "recover run --wait=30m --agent claude --prompt-file task.md"
            => "in a job: wait for limits and outages half an hour in all",
        "recover run --series night --agent claude --prompt-file task.md"
            => "from cron: begin the next night, or resume the last one while it waits",
    }
    "resume" {
        "recover resume" => "choose how to go on (without a terminal: as the policy says)",
        "recover resume --strategy retry_with_context" => "try again with the error in the prompt",
        "recover resume --instructions \"Leave the tests alone.\""
            => "say what to do differently",
        "recover resume --strategy continue_next"
            => "accept what is there and begin the next iteration",
        "recover resume --interrupted --all-repos" => "after a power cut: the runs that it ended",
        "recover resume --timeout 30m --attempts 5"
            => "give its attempts more time, and more of them",
        "recover resume --wait=2h"
            => "wait for cooldowns, limits and outages, at most two hours in all",
    }
    "rollback" {
        "recover rollback --to good --dry-run"
            => "show what going back to the last good checkpoint would change",
        "recover rollback --iteration 3" => "go back to before iteration 3",
        "recover rollback --to @7 --path 'src/**'" => "only some files, from checkpoint 7",
        "recover rollback --to good --best-effort"
            => "also where a mount or an immutable file is in the way",
    }
    "undo" {
        "recover undo --dry-run" => "show what the last rollback would give back",
        "recover undo" => "revert the last rollback; once more: the one before it",
    }
    "discard" {
        "recover discard --dry-run" => "show what taking the run back would change",
        "recover discard --series night"
            => "take the latest night back and close it; recover undo brings both back",
        "recover discard night --yes" => "from a script: take the run night back and close it",
    }
    "redo" {
        "recover redo" => "do again what undo reverted",
        "recover redo --dry-run" => "show what that would change",
    }
    "checkpoint" {
        "recover checkpoint create -m \"before the refactoring\"" => "save the work tree in a checkpoint",
        "recover checkpoint list" => "what there is to go back to",
        "recover checkpoint diff good" => "what changed since the last good one",
    }
    "checkpoint create" {
        "recover checkpoint create -m \"before the refactoring\"" => "save the work tree in a checkpoint",
        "recover checkpoint create --if-changed --trigger before_edit"
            => "from a script, before each edit",
        "recover checkpoint create --stage after_lane_tests --lane api"
            => "record a stage of a lane",
    }
    "checkpoint list" {
        "recover checkpoint list --limit 10" => "the ten newest",
        "recover checkpoint list --all-runs --json" => "those of every run, for a script",
    }
    "checkpoint show" {
        "recover checkpoint show latest" => "what the newest one holds",
        "recover checkpoint show @7 --patch" => "what changed from its predecessor to it",
    }
    "checkpoint diff" {
        "recover checkpoint diff good" => "from the last good one to the work tree",
        "recover checkpoint diff iteration:2 iteration:3 --patch"
            => "what iteration 3 changed, as a patch",
        "recover checkpoint diff initial --path 'src/**'" => "only below src",
    }
    "checkpoint restore" {
        "recover checkpoint restore good --dry-run" => "show what would change",
        "recover checkpoint restore latest~1 --path Cargo.toml"
            => "one file, from the one before the latest",
        "recover checkpoint restore latest --run lane --here"
            => "the files of a lane's work tree, in this one",
    }
    "checkpoint prune" {
        "recover checkpoint prune --keep-last 5 --dry-run" => "show what would go, with reasons",
        "recover checkpoint prune --keep-within 7d --keep-weekly 4"
            => "a week in full, then one a week",
        "recover checkpoint prune --max-total-size 2GB" => "the oldest first, until 2 GB are left",
    }
    "checkpoint pin" {
        "recover checkpoint pin good --note \"release candidate\"" => "keep it for good",
        "recover checkpoint pin @7" => "checkpoint 7",
    }
    "checkpoint unpin" {
        "recover checkpoint unpin @7" => "let pruning remove it again",
    }
    "checkpoint verify" {
        "recover checkpoint verify" => "read every object of all of them",
        "recover checkpoint verify good latest --json" => "of two, for a script",
    }
    "checkpoint export" {
        "recover checkpoint export good --patch fix.patch" => "a patch for git apply",
        "recover checkpoint export latest --bundle night.bundle"
            => "a bundle for git fetch, on another machine",
    }
    "manual-fix" {
        "recover manual-fix" => "watch your edits, run the checks when it is quiet, and go on",
        "recover manual-fix start --edit" => "open the editor at the first error",
        "recover manual-fix verify && recover manual-fix continue" => "without watching",
    }
    "manual-fix start" {
        "recover manual-fix start --edit" => "open the editor at the first error",
    }
    "manual-fix status" {
        "recover manual-fix status --json" => "what has changed since it began, for a script",
    }
    "manual-fix watch" {
        "recover manual-fix watch --wait=30m" => "until the fix is verified, half an hour at most",
    }
    "manual-fix verify" {
        "recover manual-fix verify" => "0 where the checks pass, else 100",
    }
    "manual-fix continue" {
        "recover manual-fix continue" => "the run goes on with the next iteration",
        "recover manual-fix continue --prepare-only" => "only print the next prompt",
    }
    "manual-fix abort" {
        "recover manual-fix abort" => "close the session; files stay as they are",
    }
    "retry-status" {
        "recover retry-status" => "the budget, the cooldown, and what the policy would do",
        "recover retry-status --wait=1h && ./agent.sh"
            => "in a loop: wait until a retry is allowed",
        "recover retry-status --reset" => "forget the failures of this run",
    }
    "attempt" {
        "recover attempt start && ./agent.sh && recover attempt pass"
            => "around a command of your own",
        "recover attempt fail --exit-code $? --log agent.log --check"
            => "record why it failed, and exit with the decision",
        "recover attempt list" => "what was tried, and where it is stuck",
    }
    "attempt start" {
        "recover attempt start --approach \"smaller steps\"" => "say what this one tries",
    }
    "attempt pass" {
        "recover attempt pass -m \"tests pass\"" => "take a good checkpoint",
    }
    "attempt fail" {
        "recover attempt fail --exit-code $? --log agent.log --check"
            => "exit with the decision: 5, 6, 7 or 8",
        "recover attempt fail --loop test --log - < test.log"
            => "a failed check, its output on stdin",
    }
    "attempt list" {
        "recover attempt list --json" => "for a script",
    }
    "classify" {
        "recover classify --log build.log --exit-code 2" => "why a command failed",
        "recover classify --stderr err.txt --agent claude --explain"
            => "with the rules that matched and lost",
    }
    "step" {
        "recover step migrate --atomic --path 'db/**' -- ./migrate.sh" => "all or nothing",
        "recover step release --compensate './unpublish.sh' -- ./publish.sh"
            => "say how to take it back",
    }
    "status" {
        "recover status" => "where the run is, and how to go on",
        "recover status --watch" => "the same, refreshed",
        "recover status --json" => "for a script",
    }
    "runs" {
        "recover runs" => "the runs that are not closed",
        "recover runs --all --json" => "all of them, for a script",
        "recover runs --remote team --since 24h" => "those on a remote, of a day",
    }
    "browse" {
        "recover browse" => "the runs of this project, the latest one open",
        "recover browse night" => "with the run night open",
    }
    "accept" {
        "recover accept --dry-run" => "show what would be committed, and what is left out",
        "recover accept" => "commit it all at once, on the current branch",
        "recover accept --per-iteration" => "one commit an iteration",
        "recover accept --branch night" => "commit it on a new branch",
    }
    "bisect" {
        "recover bisect -- cargo test parser" => "which iteration broke the parser",
        "recover bisect --prepare 'npm ci' -- npm test" => "install first what no checkpoint holds",
        "recover bisect --good iteration:2 -- ./check.sh" => "search after iteration 2 only",
    }
    "limits" {
        "recover limits" => "which limits hold the runs on this machine",
        "recover limits --clear claude" => "let claude's runs go on now",
    }
    "service" {
        "recover service install" => "after a restart of the machine, runs go on by themselves",
    }
    "service install" {
        "recover service install --dry-run" => "what would be written and called",
        "recover service install && loginctl enable-linger"
            => "also before you log in, where systemd starts it",
    }
    "service uninstall" {
        "recover service uninstall" => "leaves everything as it was",
    }
    "service status" {
        "recover service status" => "whether it is installed, and active",
    }
    "close" {
        "recover close" => "close the run that recover runs marks",
        "recover close --all-ended" => "close every run here that has ended, well or badly",
    }
    "forget" {
        "recover forget night-1 --dry-run" => "show what would be removed",
        "recover forget night-1 --yes" => "remove one run without a question",
        "recover forget night-1 --remote recover-state" => "remove what was sent of it, too",
        "recover forget --all" => "leave the repository as it was before recover",
    }
    "restore-project" {
        "recover restore-project" => "list the projects that can be brought back",
        "recover restore-project ~/src/shop" => "bring a removed project back",
        "recover restore-project ~/src/shop --into ~/src/shop-2"
            => "bring it back beside what is there now",
    }
    "remote" {
        "git remote add recover-state git@example.com:me/recover-state.git"
            => "a repository of its own for runs",
        "recover remote check --remote recover-state" => "what its server guarantees",
        "recover run --remote recover-state --run night -- ./agent.sh"
            => "a run that outlives this machine",
        "recover resume --remote recover-state --run night" => "go on with it in another clone",
        "recover run --remote team --run night -- ./agent.sh"
            => "the same in the object store [store.team] of your configuration",
        "recover remote status --remote recover-state" => "who holds what, and what is not sent",
    }
    "remote status" {
        "recover remote status --remote recover-state --json" => "for a script",
    }
    "remote push" {
        "recover remote push --remote recover-state --run night" => "send what is new of one run",
    }
    "remote fetch" {
        "recover remote fetch --remote recover-state" => "fetch and verify what is new",
    }
    "remote claim" {
        "recover remote claim --remote recover-state --run night --wait=1h"
            => "wait for its holder, at most an hour",
        "recover remote claim --remote recover-state --run night --steal" => "take it at once",
    }
    "remote prune" {
        "recover remote prune --remote recover-state --dry-run" => "which runs it would remove",
        "recover remote prune --remote recover-state --run night --yes"
            => "one run, as soon as it has ended",
    }
    "remote release" {
        "recover remote release --remote recover-state --run night" => "any machine may go on then",
    }
    "worker" {
        "recover worker --remote team --tasks TODO.md --agent claude"
            => "the same on each machine: every task is done once",
        "recover worker --remote team --tasks TODO.md --dry-run" => "which run has which task, and who holds it",
        "recover report --remote team" => "what came of them",
    }
    "log" {
        "recover log --limit 20" => "the newest twenty events",
        "recover log --follow --json" => "each event as it comes, one JSON document a line",
    }
    "report" {
        "recover report" => "Markdown, on the terminal",
        "recover report -o night.html" => "one HTML file",
        "recover report --format pr" => "title and body of a pull request",
        "recover report --remote team --since 24h" => "what all runs there came to, on one page",
    }
    "import" {
        "recover import battle.json attempt_history.json --dry-run" => "show what they would add",
        "recover import archive/" => "every file in a folder",
    }
    "sync" {
        "recover sync" => "write the exported files anew",
        "recover sync --to /tmp/export" => "all of them, into a folder",
    }
    "remote check" {
        "recover remote check --remote recover-state"
            => "what the server of that remote guarantees",
        "recover remote check --size 50MiB" => "and whether it takes an object of that size",
    }
    "trust" {
        "recover trust --dry-run" => "show what the configuration starts, and what changed",
        "recover trust" => "trust it",
        "recover trust --revoke" => "trust it no longer",
        "recover trust --state --dry-run" => "show what the state holds",
        "recover trust --state" => "take it over; on a terminal it asks first",
    }
    "init" {
        "recover init" => "write .ultraplan/recover.toml with what fits this project",
        "recover init --full" => "every key with its default, as comments",
        "recover init --dry-run" => "show what it would write",
    }
    "demo" {
        "recover demo" => "in a new temporary folder, which is named",
        "recover demo ~/playground" => "in a folder of your own",
    }
    "config" {
        "recover config --origins" => "each value, and where it comes from",
        "recover config --json" => "for a script",
    }
    "doctor" {
        "recover doctor" => "look for problems; changes nothing",
        "recover doctor --repair" => "finish or revert what was interrupted",
    }
    "hook" {
        "recover hook install claude" => "checkpoints before the agent's edits and risky commands",
        "recover hook install git" => "checkpoints before a rebase and a push",
        "recover hook uninstall" => "remove our lines, and nothing else",
    }
    "hook status" {
        "recover hook status --json" => "where hooks are installed, and when each was last called",
    }
    "hook print" {
        "recover hook print codex" => "the lines to copy",
    }
    "hook install" {
        "recover hook install claude" => "in the project's settings",
        "recover hook install claude --user" => "in yours, for all projects",
    }
    "hook uninstall" {
        "recover hook uninstall claude" => "from the project's settings",
    }
    "hook run" {
        "recover hook run claude < event.json" => "what the agent's settings call",
    }
    "plugin" {
        "recover plugin install claude" => "/recover:undo and more in Claude Code",
    }
    "plugin install" {
        "recover plugin install codex" => "in the project's settings",
        "recover plugin install gemini --user --dry-run" => "what would be written to yours",
    }
    "plugin uninstall" {
        "recover plugin uninstall codex" => "from the project's settings",
    }
    "plugin status" {
        "recover plugin status --json"
            => "which files of it are current, outdated, edited or missing",
    }
    "mcp" {
        "recover mcp" => "for an agent's settings: claude mcp add recover -- recover mcp",
    }
    "completions" {
        "recover completions bash > ~/.local/share/bash-completion/completions/recover"
            => "for bash",
        "recover completions fish > ~/.config/fish/completions/recover.fish" => "for fish",
    }
    "schema" {
        "recover schema checkpoint create" => "of one command",
        "recover schema" => "of all of them",
    }
};

/// The daily ones, for the top level.
pub(super) const DAILY: &[Example] = &[
    (
        "recover run --feedback test='cargo test' -- claude -p \"Make the tests pass\"",
        "run an agent under supervision",
    ),
    (
        "recover status",
        "in the morning: what happened, and how to go on",
    ),
    (
        "recover rollback --to good",
        "go back to the last checkpoint that passed; recover undo reverts it",
    ),
    (
        "recover resume --strategy retry_with_context",
        "let it go on, with what went wrong in its prompt",
    ),
];

/// The examples of a command, by its words after `recover`.
pub(super) fn of(command: &str) -> &'static [Example] {
    ALL.iter()
        .find(|(name, _)| *name == command)
        .map_or(&[], |(_, examples)| examples)
}
