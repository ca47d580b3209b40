#!/usr/bin/env python3
"""How costs grow with the tree, with the checkpoints and with the events, as exponents: 1 is linear, 0 is flat.

    python3 tests/bench/growth.py [--recover PATH] [--files N,…] [--checkpoints N,…] [--events N,…] [--runs N] [--work DIR]

PATH is the program (default target/release/recover). By default trees of 10,000, 78,000 and 300,000 files, 1 to 10,000
checkpoints, and 1,000 to 1,000,000 events. Of trees the wall time of a checkpoint is measured, beside a private index of
git's (`git add -A && git write-tree`); of checkpoints and events process time, which a busy disk does not change. An
exponent is that of the power that fits best. Ends with 1 where one is over its limit: 1.1 for trees, 0.1 for checkpoints and
for events behind a fold that is cached, 1.1 without one.
"""

import argparse
import math
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import common
from capture import Bench, make_tree
from scale import Ledger, measure, repository


def exponent(points):
    """The slope of the line through the logarithms."""
    points = [(math.log(size), math.log(cost)) for size, cost in points if size > 0 and cost > 0]
    if len(points) < 2:
        return 0.0
    mean_size, mean_cost = (statistics.mean(part) for part in zip(*points))
    spread = sum((size - mean_size) ** 2 for size, _ in points)
    return sum((size - mean_size) * (cost - mean_cost) for size, cost in points) / spread


class Table:
    def __init__(self):
        self.missed = 0

    def row(self, title, points, limit=None):
        slope = exponent(points)
        is_missed = limit is not None and slope > limit
        self.missed += is_missed
        figures = "  ".join(f"{size:,}: {cost:.1f} ms" for size, cost in points)
        held = "" if limit is None else f" (≤ {limit}{', missed' if is_missed else ''})"
        print(f"{title:32} exponent {slope:5.2f}{held}\n    {figures}", flush=True)


def trees(table, options, work):
    taken = {}
    for count in options.files:
        root = work / f"tree{count}"
        make_tree(root, count)
        bench = Bench(options.recover, work, root)
        bench.prepare()
        files = bench.files()
        for number in range(options.runs):
            for name, paths in (("nothing changed", []), ("three files changed", files[number::len(files) // 3][:3])):
                bench.edit(paths)
                taken.setdefault(name, {}).setdefault(count, []).append(bench.recover("checkpoint", "create"))
                taken.setdefault(name + ", git", {}).setdefault(count, []).append(bench.reference())
        shutil.rmtree(root)
    for name, sizes in taken.items():
        points = [(count, statistics.median(values) * 1000) for count, values in sizes.items()]
        table.row(name, points, None if name.endswith("git") else 1.1)


def checkpoints(table, options, work):
    env, root, beside = common.environment(work), work / "checkpoints", work / "beside"
    for folder in (root, beside):
        for line in repository(folder):
            measure(line, folder, env, (0,))
    ours, theirs, packs, status = [], [], [], []
    number = 0
    for count in options.checkpoints:
        while number < count:
            number += 1
            (root / "file0.txt").write_text(f"{number}\n")
            measure([options.recover, "-q", "checkpoint", "create", "--run", "day"], root, env, (0,))
        own, git, looked = [], [], []
        for _ in range(options.runs):
            number += 1
            for folder in (root, beside):
                (folder / "file0.txt").write_text(f"{number}\n")
            own.append(measure([options.recover, "checkpoint", "create", "--run", "day"], root, env, (0,))[1])
            git.append(sum(measure(line, beside, env, (0,))[1] for line in (["git", "add", "-A"], ["git", "commit", "-qm", "x"])))
            looked.append(measure(["git", "status"], root, env, (0,))[1])
        ours.append((count, statistics.median(own)))
        theirs.append((count, statistics.median(git)))
        status.append((count, statistics.median(looked)))
        objects = root / ".git/objects"
        loose = sum(1 for folder in objects.iterdir() if len(folder.name) == 2 for _ in folder.iterdir())
        packs.append(f"{count:,}: {loose} loose, {len(list(objects.glob('pack/*.pack')))} packs")
    table.row("one checkpoint more", ours, 0.1)
    table.row("one commit more, git", theirs)
    table.row("git status beside them", status)
    print("    " + "; ".join(packs))


def events(table, options, work):
    env, root = common.environment(work), work / "events"
    for line in repository(root):
        measure(line, root, env, (0,))
    (root / ".ultraplan").mkdir()
    (root / ".ultraplan/recover.toml").write_text("[cooldown]\nduration = '0s'\n")
    command = 'test "$RECOVER_ATTEMPT" = 2 || { echo "error: it does not work" >&2; exit 1; }'
    line = [options.recover, "-q", "run", "--run", "template", "--iterations", "1", "--", "sh", "-c", command]
    measure(line, root, env, (0,))
    path, copy = root / ".ultraplan/state/events.jsonl", next((root / ".git/recover").glob("ledger-*.jsonl"))
    template = path.read_bytes()
    cached, lost = [], []
    for count in options.events:
        path.write_bytes(template)
        ledger = Ledger(path)
        ledger.repeat(ledger.template("template"), "template", count)
        shutil.copyfile(path, copy)
        fail = [options.recover, "attempt", "fail", "--run", "goes-on", "--message", "first", "--no-rollback"]
        measure(fail, root, env, (0,))
        looked = [options.recover, "retry-status", "--run", "goes-on"]
        warm, cold = [], []
        for _ in range(options.runs):
            warm.append(measure(looked, root, env, (0,))[1])
        for _ in range(min(options.runs, 3)):
            (root / ".ultraplan/state/recover/fold.cache").unlink(missing_ok=True)
            cold.append(measure(looked, root, env, (0,))[1])
        cached.append((count, statistics.median(warm)))
        lost.append((count, statistics.median(cold)))
    table.row("retry-status", cached, 0.1)
    table.row("retry-status, the cache lost", lost, 1.1)


def main():
    numbers = lambda text: [int(part.replace("_", "")) for part in text.split(",") if part]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recover", default=str(common.RECOVER), help="the program")
    parser.add_argument("--files", type=numbers, default=[10_000, 78_000, 300_000], help="sizes of trees")
    parser.add_argument("--checkpoints", type=numbers, default=[1, 10, 100, 1_000, 10_000])
    parser.add_argument("--events", type=numbers, default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--runs", type=int, default=7, help="runs of each, of which the median counts")
    parser.add_argument("--work", type=Path, help="where the temporary folder is made")
    options = parser.parse_args()
    options.recover = str(Path(options.recover).resolve())
    table = Table()
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        for part, sizes in ((trees, options.files), (checkpoints, options.checkpoints), (events, options.events)):
            if sizes:
                part(table, options, Path(work).resolve())
    return 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())
