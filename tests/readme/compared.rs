//! The README's table: the same harm done to the same repository, protected by `git stash`, by a loop, and by `recover`.

use super::env::TestEnv;

/// What stands between the work and the agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// `git stash` before, `git stash apply` afterwards.
    Stash,
    /// `while true; do agent; check && break; done`.
    Loop,
    Recover,
}

const GUARDS: [Guard; 3] = [Guard::Stash, Guard::Loop, Guard::Recover];

/// What happens, and whether it ended well; `None` where the guard is not made for it.
type Case = (&'static str, fn(Guard) -> Option<bool>);

const CASES: [Case; 6] = [
    (
        "the agent runs `git reset --hard` and `git clean -fd`: work that was in no commit comes back",
        loses_work,
    ),
    (
        "it deletes an empty folder and makes a private file readable for all: both are as before",
        loses_modes,
    ),
    (
        "it commits its failed work: the branch is where it was",
        commits,
    ),
    (
        "going back was wrong: what the agent did can be had again",
        goes_back,
    ),
    ("it always fails: it is stopped", always_fails),
    (
        "everything is killed and started again: used attempts stay used",
        is_killed,
    ),
];

/// As Markdown.
pub fn table() -> String {
    let mut table =
        "| | `git stash` | a loop | `recover` |\n| --- | --- | --- | --- |\n".to_owned();
    for (what, happens) in CASES {
        let cells = GUARDS.map(|guard| match happens(guard) {
            Some(true) => "yes",
            Some(false) => "no",
            None => "–",
        });
        table += &format!("| {what} | {} |\n", cells.join(" | "));
    }
    table
}

/// A repository with work that is in no commit, an agent, and a check that it never passes.
fn project(agent: &str) -> TestEnv {
    let env = super::project();
    env.script("../agent.sh", agent);
    env.write("a.txt", "changed, not committed\n");
    env.write("new.txt", "in no commit\n");
    env.sh("mkdir empty; echo secret > key; chmod 600 key; git rev-parse HEAD > ../head")
        .expect(0);
    env
}

/// Protects the work, lets the agent do its harm once, and goes back.
fn harmed(guard: Guard, agent: &str) -> TestEnv {
    let env = project(agent);
    match guard {
        Guard::Stash => {
            env.sh("git stash -q -u && git stash apply -q --index; ../agent.sh")
                .expect(0);
            // What may fail is what is looked at.
            env.sh("git checkout -q . && git clean -q -fd && git stash apply -q --index");
        }
        Guard::Loop => {
            drop(env.sh("timeout 1 sh -c 'while :; do ../agent.sh; ./check.sh && break; done'"));
        }
        Guard::Recover => {
            env.sh("recover run --attempts 1 --feedback test=./check.sh -- ../agent.sh; recover rollback --to initial");
        }
    }
    env
}

#[expect(clippy::unnecessary_wraps, reason = "one of several cases")]
fn loses_work(guard: Guard) -> Option<bool> {
    let env = harmed(guard, "git reset -q --hard; git clean -q -fd");
    let is = |path: &str, text: &str| env.exists(path) && env.read(path) == text;
    Some(is("a.txt", "changed, not committed\n") && is("new.txt", "in no commit\n"))
}

#[expect(clippy::unnecessary_wraps, reason = "one of several cases")]
fn loses_modes(guard: Guard) -> Option<bool> {
    let env = harmed(guard, "rmdir empty 2> /dev/null; chmod 644 key");
    Some(env.exists("empty") && env.mode("key") == 0o600)
}

#[expect(clippy::unnecessary_wraps, reason = "one of several cases")]
fn commits(guard: Guard) -> Option<bool> {
    let env = harmed(
        guard,
        "echo broken > app.txt; git add -A; git commit -q -m 'all done' || true",
    );
    Some(
        env.sh("test $(git rev-parse HEAD) = $(cat ../head)").code == 0
            && env.read("app.txt") == "works\n",
    )
}

fn goes_back(guard: Guard) -> Option<bool> {
    if guard == Guard::Loop {
        return None;
    }
    let env = harmed(guard, "echo half a day of work > idea.txt");
    assert!(!env.exists("idea.txt"));
    if guard == Guard::Recover {
        env.recover(&["undo"]).expect(0);
    }
    Some(env.exists("idea.txt") || env.git(&["stash", "list", "-p"]).contains("half a day"))
}

fn always_fails(guard: Guard) -> Option<bool> {
    let env = project("echo x >> ../attempts; echo broken > app.txt");
    let run = match guard {
        Guard::Stash => return None,
        Guard::Loop => {
            "timeout 2 sh -c 'while :; do ../agent.sh; ./check.sh && break; sleep 0.05; done'"
        }
        Guard::Recover => {
            "timeout 60 recover run --attempts 3 --feedback test=./check.sh -- ../agent.sh"
        }
    };
    // 124: the time was up.
    Some(env.sh(run).code != 124 && env.read("../attempts").lines().count() == 3)
}

fn is_killed(guard: Guard) -> Option<bool> {
    let env =
        project("echo x >> ../attempts; echo broken > app.txt; test ! -e ../kill || kill -9 $PPID");
    let run = match guard {
        Guard::Stash => return None,
        Guard::Loop => "sh -c 'for attempt in 1 2 3; do ../agent.sh; ./check.sh && break; done'",
        Guard::Recover => {
            "recover resume r || recover run --run r --attempts 3 --feedback test=./check.sh -- ../agent.sh"
        }
    };
    env.sh("touch ../kill");
    env.sh(run);
    env.sh("rm ../kill");
    env.sh(run);
    env.sh(run);
    Some(env.read("../attempts").lines().count() == 3)
}
