#!/usr/bin/env python3
"""Many lanes of one repository at once: each reports attempt after attempt, one a second, and nobody is turned away.

    python3 tests/bench/lanes.py [RECOVER] [LANES] [SECONDS]

RECOVER is the program (default target/release/recover), LANES how many work trees (64), SECONDS how long (60). In each
lane a loop writes a file, and records `attempt start` and `attempt pass` (every fifth time `attempt fail`), so that each
command appends to the one ledger that all share. What is measured is the whole of each command, from its start to its
end: the p99 of `attempt start`, which does little but append. `git commit` of the same work trees is the reference.

Ends with 1 when a command was refused (11) or failed, when the p99 of an append is over 200 ms, or when an
`attempt pass` that said it was recorded has no checkpoint in the ledger.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from common import environment, program, small_repository

TARGET_MS = 200.0
PACE = 1.0


class Lane(threading.Thread):
    def __init__(self, number, recover, folder, env, until):
        super().__init__()
        self.lane = f"L{number}"
        self.recover, self.folder, self.env, self.until = recover, folder, env, until
        self.delay = PACE * number / 64
        self.taken, self.refused, self.failed, self.checkpoints = {}, 0, [], []

    def call(self, name, *words):
        command = [self.recover, "--json", *words, "--run", "bench", "--lane", self.lane]
        begun = time.perf_counter()
        done = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, check=False)
        self.taken.setdefault(name, []).append((time.perf_counter() - begun) * 1000)
        self.refused += done.returncode == 11
        if done.returncode != 0:
            self.failed.append((name, done.returncode, done.stderr.decode(errors="replace")[-300:]))
            return None
        return json.loads(done.stdout)

    def run(self):
        time.sleep(self.delay)
        number = 0
        while time.monotonic() < self.until:
            begun = time.monotonic()
            number += 1
            Path(self.folder, "work.txt").write_text(f"{self.lane} {number}\n")
            self.call("attempt start", "attempt", "start", "--iteration", "1")
            if number % 5:
                document = self.call("attempt pass", "attempt", "pass")
                if document is not None:
                    self.checkpoints.append(document["checkpoint_id"])
            else:
                self.call("attempt fail", "attempt", "fail", "--message", "odd", "--no-rollback")
            time.sleep(max(0.0, PACE - (time.monotonic() - begun)))


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def reference(folder, env):
    """Milliseconds that a commit of one file takes here now."""
    taken = []
    for number in range(20):
        Path(folder, "reference.txt").write_text(f"{number}\n")
        begun = time.perf_counter()
        for line in (["git", "add", "reference.txt"], ["git", "commit", "-qm", "reference"]):
            subprocess.run(line, cwd=folder, env=env, check=True)
        taken.append((time.perf_counter() - begun) * 1000)
    return taken


def main():
    recover = program()
    lanes = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 60
    with tempfile.TemporaryDirectory() as home:
        env = environment(home)
        work = Path(home, "work")
        small_repository(work, env)
        folders = [Path(home, f"lane{number}") for number in range(lanes)]
        for number, folder in enumerate(folders):
            line = ["git", "worktree", "add", "-q", "-b", f"lane{number}", folder]
            subprocess.run(line, cwd=work, env=env, check=True, capture_output=True)
        commits = reference(work, env)
        until = time.monotonic() + seconds
        all_lanes = [Lane(number, recover, folder, env, until) for number, folder in enumerate(folders)]
        for lane in all_lanes:
            lane.start()
        for lane in all_lanes:
            lane.join()
        listed = [recover, "--json", "checkpoint", "list", "--all-runs"]
        listed = json.loads(subprocess.run(listed, cwd=work, env=env, capture_output=True, check=True).stdout)
    known = {checkpoint["id"] for checkpoint in listed["checkpoints"] if checkpoint["verdict"] == "passed"}
    taken = {"git commit": commits}
    for lane in all_lanes:
        for name, values in lane.taken.items():
            taken.setdefault(name, []).extend(values)
    print(f"{lanes} lanes, {seconds} s{'':22} {'count':>7} {'median':>10} {'p99':>10} {'most':>10}")
    for name, values in taken.items():
        median, p99, most = percentile(values, 0.5), percentile(values, 0.99), max(values)
        print(f"{name:32} {len(values):7} {median:7.1f} ms {p99:7.1f} ms {most:7.1f} ms")
    refused = sum(lane.refused for lane in all_lanes)
    failed = [entry for lane in all_lanes for entry in lane.failed]
    passed = [checkpoint for lane in all_lanes for checkpoint in lane.checkpoints]
    lost = [checkpoint for checkpoint in passed if checkpoint not in known]
    print(f"refused (11): {refused}, failed: {len(failed)}, passed without a checkpoint: {len(lost)} of {len(passed)}")
    for name, code, said in failed[:3]:
        print(f"  {name}: {code}: {said.strip()}")
    p99 = percentile(taken["attempt start"], 0.99)
    if failed or lost or p99 > TARGET_MS:
        print(f"missed: p99 of an append {p99:.1f} ms, target {TARGET_MS} ms; nothing refused, failed or lost")
        sys.exit(1)


main()
