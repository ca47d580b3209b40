#!/usr/bin/env python3
"""How many syncs and opened files a command takes, and how much anonymous memory. Needs strace.

    python3 tests/bench/counts.py [RECOVER]

RECOVER is the program (default target/release/recover). Each command is called in a small repository that has a run
already; `git commit` is the reference. Counts do not depend on how busy the machine is. Ends with 1 where there are more
than the targets allow.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from common import anonymous, environment, program, small_repository

SYNCS = ("fsync", "fdatasync", "syncfs", "sync", "sync_file_range", "msync")
# Syncs, opened files.
TARGETS = {
    "run -- true": (20, 450),
    "checkpoint create": (8, 110),
    "attempt start": (3, 70),
    "attempt fail": (8, 160),
    "attempt pass": (8, 160),
    "status": (0, 90),
}
MIB = 64.0


def traced(command, folder, env):
    with tempfile.NamedTemporaryFile("r") as log:
        calls = ",".join((*SYNCS, "open", "openat"))
        subprocess.run(["strace", "-f", "-qq", "-o", log.name, "-e", f"trace={calls}", *command], cwd=folder, env=env,
                       stdout=subprocess.DEVNULL, check=True)
        # How many of its own ancestors a command looks at is up to who calls it.
        lines = [line for line in log.read().splitlines() if '"/proc/' not in line]
    names = [match and match[1] for match in (re.match(r"\d+ +(\w+)\(", line) for line in lines)]
    failed = sum(" = -1 " in line for line, name in zip(lines, names) if name in ("open", "openat"))
    return sum(name in SYNCS for name in names), sum(name in ("open", "openat") for name in names) - failed


def main():
    recover = program()
    missed = 0
    with tempfile.TemporaryDirectory() as home:
        env = environment(home)
        work = Path(home, "work")
        small_repository(work, env)
        subprocess.run([recover, "-q", "run", "--", "true"], cwd=work, env=env, stdout=subprocess.DEVNULL, check=True)
        create = [recover, "-q", "checkpoint", "create", "--run", "m"]
        subprocess.run(create, cwd=work, env=env, stdout=subprocess.DEVNULL, check=True)
        commands = {
            "run -- true": ["run", "--", "true"],
            "checkpoint create": ["checkpoint", "create", "--run", "m"],
            "attempt start": ["attempt", "start", "--run", "m"],
            "attempt fail": ["attempt", "fail", "--run", "m", "--message", "odd", "--no-rollback"],
            "attempt start again": ["attempt", "start", "--run", "m"],
            "attempt pass": ["attempt", "pass", "--run", "m"],
            "status": ["status", "--run", "m"],
        }
        print(f"{'':24} {'syncs':>6} {'opened':>7} {'RssAnon':>9}   targets")
        for number, (name, words) in enumerate(commands.items()):
            Path(work, "file0.txt").write_text(f"{number}\n")
            syncs, opened = traced([recover, "-q", *words], work, env)
            target = TARGETS.get(name)
            missed += target is not None and (syncs > target[0] or opened > target[1])
            print(f"{name:24} {syncs:6} {opened:7} {'':9}   {target or '-'}")
        for number, name in enumerate(("checkpoint create", "status")):
            Path(work, "file0.txt").write_text(f"{number} for memory\n")
            mib = anonymous([recover, "-q", *commands[name]], work, env)
            missed += mib > MIB
            print(f"{name:24} {'':6} {'':7} {mib:5.1f} MiB   {MIB} MiB")
        subprocess.run(["git", "add", "-A"], cwd=work, env=env, check=True)
        syncs, opened = traced(["git", "commit", "-qm", "text"], work, env)
        print(f"{'git commit':24} {syncs:6} {opened:7}")
    sys.exit(missed > 0)


main()
