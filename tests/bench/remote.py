#!/usr/bin/env python3
"""What a push and a fetch of what is new of a run cost, beside git's own push and fetch of the same objects.

    python3 tests/bench/remote.py [RECOVER] [--quick]

RECOVER is the program (default target/release/recover). A run with 1,000 checkpoints lies on a `git daemon` on 127.0.0.1,
in a state directory whose ledger has 100,000 events, most of them of other runs, as after months of use; `--quick` takes a
tenth of both. Each round changes a file, takes a checkpoint, and sends it with `recover remote push`; the very commit that it
made is then sent with `git push` from the same clone to a second repository that was at the same state. A second clone
fetches it with `recover remote fetch`, a third with `git fetch` from the second repository. Ends with 1 when the median of
recover's is over twice git's.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import environment, program
from scale import Ledger, measure, repository
from server import free_port

MOST = 2.0
RUN = "refs/recover-runs/bench"


def main():
    is_quick = "--quick" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--quick"]
    recover = program()
    rounds, events, checkpoints = (5, 10_000, 100) if is_quick else (20, 100_000, 1_000)
    with tempfile.TemporaryDirectory() as home:
        env = environment(home)
        work, reader, beside = (Path(home, name) for name in ("work", "reader", "beside"))

        def call(folder, *command, codes=(0,)):
            return measure(list(command), folder, env, codes)[0]

        def said(folder, *command):
            return subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, text=True).stdout.strip()

        for line in repository(work):
            call(work, *line)
        for name in ("one.git", "two.git"):
            said(home, "git", "clone", "-q", "--bare", str(work), name)
        port = free_port()
        daemon = subprocess.Popen(
            [Path(said(home, "git", "--exec-path")) / "git-daemon", "--reuseaddr", "--export-all", "--enable=receive-pack",
             "--listen=127.0.0.1", f"--port={port}", f"--base-path={home}"], env=env, stderr=subprocess.DEVNULL)
        try:
            time.sleep(0.5)
            one, two = (f"git://127.0.0.1:{port}/{name}.git" for name in ("one", "two"))
            said(work, "git", "remote", "add", "origin", one)
            said(home, "git", "clone", "-q", one, str(reader))
            said(home, "git", "clone", "-q", two, str(beside))
            config = Path(home, ".config/recover")
            config.mkdir(parents=True)
            Path(config, "config.toml").write_text(f'[remote]\nconsent = "{one}"\n')
            Path(work, ".ultraplan").mkdir()
            Path(work, ".ultraplan/recover.toml").write_text("[cooldown]\nduration = '0s'\n")

            # Other runs' events, as in a ledger of months.
            fails = 'test "$RECOVER_ATTEMPT" = 2 || { echo "error: it does not work" >&2; exit 1; }'
            call(work, recover, "-q", "run", "--run", "template", "--iterations", "1", "--", "sh", "-c", fails)
            ledger = Ledger(work / ".ultraplan/state/events.jsonl")
            ledger.repeat(ledger.template("template"), "template", events)
            name = ["--remote", "origin", "--run", "bench"]
            for number in range(checkpoints):
                Path(work, "file0.txt").write_text(f"{number} of the checkpoints\n")
                call(work, recover, "-q", "checkpoint", "create", "--run", "bench")
                if number == 0:
                    call(work, recover, "-q", "remote", "claim", *name)
                elif number % 10 == 0:
                    call(work, recover, "-q", "remote", "push", *name)
            call(work, recover, "-q", "remote", "push", *name)
            call(reader, recover, "-q", "remote", "fetch", *name)
            tip = said(Path(home, "one.git"), "git", "rev-parse", RUN)
            call(work, "git", "push", "-q", two, f"{tip}:{RUN}")
            call(beside, "git", "fetch", "-q", "--no-tags", two, f"+{RUN}:refs/tracking/bench")

            taken = {name: [] for name in ("recover remote push", "git push", "recover remote fetch", "git fetch")}
            for number in range(rounds):
                Path(work, "file0.txt").write_text(f"{number} of the rounds\n")
                call(work, recover, "-q", "checkpoint", "create", "--run", "bench")
                taken["recover remote push"].append(call(work, recover, "-q", "remote", "push", *name))
                before, tip = tip, said(Path(home, "one.git"), "git", "rev-parse", RUN)
                assert before != tip, "nothing was pushed"
                lease = f"--force-with-lease={RUN}:{before}"
                taken["git push"].append(call(work, "git", "push", "-q", lease, two, f"{tip}:{RUN}"))
                taken["recover remote fetch"].append(call(reader, recover, "-q", "remote", "fetch", *name))
                fetch = ["git", "fetch", "-q", "--no-tags", two, f"+{RUN}:refs/tracking/bench"]
                taken["git fetch"].append(call(beside, *fetch))
        finally:
            daemon.terminate()
            daemon.wait()
    medians = {name: statistics.median(all_of_it) for name, all_of_it in taken.items()}
    print(f"{checkpoints:,} checkpoints of the run, {events:,} events in the ledger; medians of {rounds}")
    missed = 0
    for what in ("push", "fetch"):
        ours, theirs = medians[f"recover remote {what}"], medians[f"git {what}"]
        missed += ours > MOST * theirs
        print(f"{what:6} recover {ours:7.1f} ms, git {theirs:7.1f} ms: {ours / theirs:.2f} times, at most {MOST:.0f}")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
