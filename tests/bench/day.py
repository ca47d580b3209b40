#!/usr/bin/env python3
"""A day of checkpoints by an agent's hook in a large tree: what each costs, what they leave, what git's own commands notice.

    python3 tests/bench/day.py [--recover PATH] [--tree DIR | --quick] [--work DIR] [--checkpoints N]

PATH is the program (default target/release/recover). The tree is made as `capture.py` does, and kept in the folder of
`--work`. Before each of N edits (2,000) of one file the hook is called as Claude Code calls it. Its wall time is shown for
the first and the last fifty, what the checkpoints left (bytes, loose objects, packs), and before and after them `git
status` and `git commit` of one file, medians of five. Ends with 1 where an edit has no checkpoint, the last fifty take over
1.2 times what the first took, or over 500 loose objects are left.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import common
from capture import LEDGER, Bench, make_source, size_of

MOST_LOOSE = 500
MOST_GROWTH = 1.2


def objects(root):
    folder = root / ".git/objects"
    loose = sum(1 for part in folder.iterdir() if len(part.name) == 2 for _ in part.iterdir())
    return loose, len(list(folder.glob("pack/*.pack")))


def of_git(bench, chosen):
    """Milliseconds of `git status`, and of `git commit` of a file that changed."""
    taken = ([], [])
    for number in range(5):
        bench.edit([chosen])
        taken[0].append(bench.timed(["git", "status"]))
        taken[1].append(bench.timed(["git", "commit", "-qm", "text", chosen]))
    return tuple(statistics.median(values) * 1000 for values in taken)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recover", default=str(common.RECOVER), help="the program")
    parser.add_argument("--tree", type=Path, help="a folder to copy; its .git is left out")
    parser.add_argument("--work", type=Path, help="where to work; kept")
    parser.add_argument("--checkpoints", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="a made-up tree of 4,000 files, to try it out")
    options = parser.parse_args()
    options.recover = str(Path(options.recover).resolve())
    with tempfile.TemporaryDirectory() as other:
        work = (options.work or Path(other)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        bench = Bench(options.recover, work, work / "tree")
        if not (work / "ready").exists():
            make_source(options, bench.root)
            bench.prepare()
            (work / "ready").touch()
        bench.git("reset", "-q", "--hard")
        bench.git("clean", "-qffdx")
        bench.forget()
        bench.git("gc", "-q", "--prune=now")
        bench.settle()
        return day(bench, options.checkpoints)


def day(bench, count):
    files = bench.files()
    edited = files[:: max(1, len(files) // count)][:count]
    before, places = of_git(bench, files[-1]), (bench.root / ".git", bench.root / ".ultraplan/state")
    bytes_before, (loose_before, packs_before) = sum(size_of(place, LEDGER)[0] for place in places), objects(bench.root)
    taken = []
    for path in edited:
        call = {"hook_event_name": "PreToolUse", "session_id": "day", "cwd": str(bench.root), "tool_name": "Edit",
                "tool_input": {"file_path": str(bench.root / path), "old_string": "a", "new_string": "b"}}
        begun = time.perf_counter()
        command = [bench.recover_path, "hook", "run", "claude"]
        subprocess.run(command, cwd=bench.root, env=bench.env, check=True, input=json.dumps(call), text=True)
        taken.append((time.perf_counter() - begun) * 1000)
        bench.edit([path])
    made = len(bench.git("for-each-ref", "refs/recover/claude-day").splitlines())
    first, last = statistics.median(taken[:50]), statistics.median(taken[-50:])
    left, (loose, packs) = sum(size_of(place, LEDGER)[0] for place in places) - bytes_before, objects(bench.root)
    after = of_git(bench, files[-1])
    print(f"{len(files):,} files, {len(edited):,} edits, {made:,} checkpoints")
    print(f"the hook: the first fifty {first:.0f} ms, the last fifty {last:.0f} ms ({last / first:.2f}, most {MOST_GROWTH})")
    print(f"left: {left / 2**20:.1f} MiB, {left / made / 2**10:.1f} KiB a checkpoint; loose objects {loose_before} to {loose} "
          f"(most {MOST_LOOSE}), packs {packs_before} to {packs}")
    print(f"git status {before[0]:.0f} ms before, {after[0]:.0f} after; git commit {before[1]:.0f} before, {after[1]:.0f} after")
    return 1 if made < len(edited) or last > MOST_GROWTH * first or loose > MOST_LOOSE else 0


if __name__ == "__main__":
    sys.exit(main())
