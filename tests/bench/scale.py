#!/usr/bin/env python3
"""How long whole commands take when the ledger has grown: 100,000 events and 1,000 checkpoints.

    python3 tests/bench/scale.py [RECOVER] [RUNS] [EVENTS] [CHECKPOINTS]

RECOVER is the program (default target/release/recover). The checkpoints and one short run are made by it; the run's
events are then repeated under other names until the ledger has EVENTS of them, as after months of use: most of them in
runs that are complete, the rest in one run that goes on. The reference in the same rounds is one file changed and
committed by git, which is the least that a command does that takes a checkpoint. Ends with 1 when the median of a
command is over its target.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

from common import environment, program

# Milliseconds of process time.
TARGETS = {
    "retry-status": 20.0,
    "status": 20.0,
    "attempt fail": 20.0,
    "checkpoint list": 50.0,
}
# Iterations of a run, and how many of a hundred runs' worth of events one run that has not ended holds.
ITERATIONS = 20
OPEN_SHARE = 0.02
COMMIT = (["git", "add", "-A"], ["git", "commit", "-qm", "text"])


def encode(event):
    event.pop("checksum", None)
    text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f'{text[:-1]},"checksum":"{zlib.crc32(text.encode()):08x}"}}\n'


class Ledger:
    """Repeats what the program itself wrote."""

    def __init__(self, path):
        self.path = path
        self.events = [json.loads(line) for line in path.read_text().splitlines()]

    def template(self, run_id):
        """A run's events but for its checkpoints, so that none is there without its commit."""
        kept = [event for event in self.events if event.get("run_id") == run_id]
        return [event for event in kept if event["type"] != "checkpoint_created"]

    def repeat(self, template, run_id, total):
        begin = [event for event in template if event["type"] == "run_created"]
        attempts = [event for event in template if event["type"] not in ("run_created", "run_status_changed")]
        ended = [event for event in template if event["type"] == "run_status_changed"]
        seq = self.events[-1]["seq"]
        number = 0
        with open(self.path, "a", encoding="utf-8") as ledger:
            while seq < total:
                is_open = total - seq <= total * OPEN_SHARE
                name = "goes-on" if is_open else f"ended-{number}"
                iterations = 10**9 if is_open else ITERATIONS
                number += 1
                for event in begin:
                    seq += 1
                    ledger.write(self.line(event, seq, run_id, name, 1))
                iteration = 0
                while iteration < iterations and seq < total:
                    iteration += 1
                    for event in attempts:
                        seq += 1
                        ledger.write(self.line(event, seq, run_id, name, iteration))
                if not is_open:
                    for event in ended:
                        seq += 1
                        ledger.write(self.line(event, seq, run_id, name, iteration))

    @staticmethod
    def line(event, seq, run_id, name, iteration):
        event = json.loads(json.dumps(event).replace(run_id, name))
        event["seq"] = seq
        payload = event["payload"]
        if "checkpoint_id" in payload:
            payload["checkpoint_id"] = None
        for part in (payload, payload.get("failure") or {}):
            if "iteration" in part:
                part["iteration"] = iteration
        if "subtask" in payload:
            payload["subtask"] = f"{name}/iteration-{iteration}"
        return encode(event)


def measure(command, folder, env, codes):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in codes:
        sys.exit(f"{command} ended with {done.returncode}: {done.stderr.decode()}")
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return wall * 1000, spent * 1000


def repository(work, count=50):
    """The commands that make a repository of as many files in `work`."""
    work.mkdir()
    for number in range(count):
        Path(work, f"file{number}.txt").write_text(f"{number}\n")
    return (["git", "init", "-q"], *COMMIT)


def reference(work, env, number):
    """Wall and process time of a change that git commits."""
    Path(work, "file0.txt").write_text(f"{number} of the rounds\n")
    return tuple(map(sum, zip(*(measure(line, work, env, (0,)) for line in COMMIT))))


def main():
    recover = program()
    runs, events, checkpoints = (int(sys.argv[at]) if len(sys.argv) > at else default
                                 for at, default in ((2, 20), (3, 100_000), (4, 1_000)))
    with tempfile.TemporaryDirectory() as home:
        env = environment(home)
        work, beside = Path(home, "work"), Path(home, "beside")

        def call(*command, codes=(0,)):
            measure(list(command), work, env, codes)

        for line in repository(work):
            call(*line)
        for line in repository(beside):
            measure(line, beside, env, (0,))
        Path(work, ".ultraplan").mkdir()
        Path(work, ".ultraplan/recover.toml").write_text("[cooldown]\nduration = '0s'\n")
        command = 'test "$RECOVER_ATTEMPT" = 2 || { echo "error: it does not work" >&2; exit 1; }'
        call(recover, "-q", "run", "--run", "template", "--iterations", "1", "--", "sh", "-c", command)
        for number in range(checkpoints):
            Path(work, "file0.txt").write_text(f"{number} of the checkpoints\n")
            call(recover, "-q", "checkpoint", "create", "--run", f"kept-{number // 100}")
        ledger = Ledger(work / ".ultraplan/state/events.jsonl")
        ledger.repeat(ledger.template("template"), "template", events)
        begun = time.perf_counter()
        call(recover, "attempt", "fail", "--run", "goes-on", "--message", "first", "--no-rollback")
        first = time.perf_counter() - begun
        print(f"{events:,} events, {checkpoints:,} checkpoints; the first command folded them in {first:.1f} s")
        commands = {
            "retry-status": ["retry-status", "--run", "goes-on", "--json"],
            "status": ["status", "--run", "goes-on", "--json"],
            "attempt fail": ["attempt", "fail", "--run", "goes-on", "--message", "again", "--json"],
            "checkpoint list": ["checkpoint", "list", "--all-runs", "--json"],
            "log --limit 5": ["log", "--limit", "5", "--json"],
            "report": ["report", "--run", "goes-on", "--format", "json"],
        }
        taken = {name: [] for name in (*commands, "git add, git commit")}
        for number in range(runs):
            taken["git add, git commit"].append(reference(beside, env, number))
            for name, words in commands.items():
                taken[name].append(measure([recover, *words], work, env, (0,)))
    print(f"{'median of ' + str(runs):20} {'wall':>9} {'process':>9} {'target':>9}")
    missed = 0
    for name, all_taken in taken.items():
        wall, process = (statistics.median(part) for part in zip(*all_taken))
        target = TARGETS.get(name)
        missed += target is not None and process > target
        print(f"{name:20} {wall:6.1f} ms {process:6.1f} ms {f'{target:.0f} ms' if target else '-':>9}")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
