#!/usr/bin/env python3
"""Many lanes of one repository at once: each reports attempt after attempt, one a second, and nobody is turned away.

    python3 tests/bench/lanes.py [RECOVER] [LANES] [SECONDS]

RECOVER is the program (default target/release/recover), LANES how many work trees (64), SECONDS how long (60). In each
lane a loop writes a file, and records `attempt start` and `attempt pass` (every fifth time `attempt fail`), so that each
command appends to the one ledger that all share. What is measured of each command is the whole of it, from its start to
its end, the process time that it took, its append, from when it asks for the ledger's lock to when its event is synced
(which includes the checkpoint that an attempt ends with), and how long it held that lock. `git commit` of the same work
trees is the reference.

Ends with 1 when a command was refused (11) or failed, when the p99 of an append of `attempt start` is over 200 ms, or when
an `attempt pass` that said it was recorded has no checkpoint in the ledger.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from common import environment, program, small_repository

TARGET_MS = 200.0
PACE = 1.0
APPENDED = re.compile(rb"recorded since the ledger's lock was asked for micros=(\d+)")
HELD = re.compile(rb"the ledger was locked micros=(\d+)")


class Lane(threading.Thread):
    def __init__(self, number, recover, folder, env, until):
        super().__init__()
        self.lane = f"L{number}"
        self.recover, self.folder, self.until = recover, folder, until
        self.env = env | {"RECOVER_LOG": "recover::store=debug"}
        self.delay = PACE * number / 64
        self.refused, self.failed, self.checkpoints = 0, [], []
        # By command: milliseconds of the whole, of process time, of the append, of the lock.
        self.taken = {}

    def call(self, name, *words):
        command = [self.recover, "--json", *words, "--run", "bench", "--lane", self.lane]
        with tempfile.TemporaryFile() as said:
            begun = time.perf_counter()
            child = subprocess.Popen(command, cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=said,
                                     stdin=subprocess.DEVNULL, close_fds=False)
            answer = child.stdout.read()
            child.stdout.close()
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.perf_counter() - begun
            child.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            said = said.read()
        if child.returncode != 0:
            self.refused += child.returncode == 11
            self.failed.append((name, child.returncode, said.decode(errors="replace")[-300:]))
            return None
        spent = usage.ru_utime + usage.ru_stime
        # The first one waits for the lock; what comes after it in the same hold of it is an event more.
        appended = max(map(int, APPENDED.findall(said)), default=0)
        held = sum(map(int, HELD.findall(said)))
        self.taken.setdefault(name, []).append((wall * 1000, spent * 1000, appended / 1000, held / 1000))
        return json.loads(answer)

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


def report(title, lanes):
    """Prints what these lanes did; the p99 of what `attempt start` appends."""
    taken = {}
    for lane in lanes:
        for name, values in lane.taken.items():
            taken.setdefault(name, []).extend(values)
    print(f"{title:28} {'count':>6} {'median':>9} {'p99':>9} {'process':>9} {'append':>9} {'p99':>9} {'locked':>9}")
    for name, values in sorted(taken.items()):
        wall, spent, appended, held = zip(*values)
        figures = (percentile(wall, 0.5), percentile(wall, 0.99), sum(spent) / len(spent),
                   percentile(appended, 0.5), percentile(appended, 0.99), sum(held) / len(held))
        print(f"{name:28} {len(values):6} " + " ".join(f"{figure:6.1f} ms" for figure in figures))
    return percentile([value[2] for value in taken["attempt start"]], 0.99)


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
    p99 = report(f"{lanes} lanes, {seconds} s", all_lanes)
    print(f"{'git commit':28} {len(commits):6} {percentile(commits, 0.5):6.1f} ms {percentile(commits, 0.99):6.1f} ms")
    refused = sum(lane.refused for lane in all_lanes)
    failed = [entry for lane in all_lanes for entry in lane.failed]
    passed = [checkpoint for lane in all_lanes for checkpoint in lane.checkpoints]
    lost = [checkpoint for checkpoint in passed if checkpoint not in known]
    print(f"refused (11): {refused}, failed: {len(failed)}, passed without a checkpoint: {len(lost)} of {len(passed)}")
    for name, code, said in failed[:3]:
        print(f"  {name}: {code}: {said.strip()}")
    if failed or lost or p99 > TARGET_MS:
        print(f"missed: p99 of an append {p99:.1f} ms, target {TARGET_MS} ms; nothing refused, failed or lost")
        sys.exit(1)


main()
