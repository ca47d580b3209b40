#!/usr/bin/env python3
"""How long checkpoints and rollbacks take in a large tree, and how much memory and disk, beside what git itself takes.

    python3 tests/bench/capture.py [--recover PATH] [--tree DIR | --quick] [--work DIR] [--runs N]

The tree is a copy of DIR, or the source in /usr/src/linux-source-6.1.tar.xz (Debian package linux-source-6.1), or with
`--quick` a small made-up one. Everything happens in a copy below the folder of `--work`, which keeps it for the next
time; without one it is a temporary folder. PATH is the program (default target/release/recover).

The reference G is what agents' shadow repositories run: `git add -A && git write-tree` with a private index that is kept
between calls. Program and reference take turns, each on a change of its own of the same kind, with warm caches; the
figures are medians. Ends with 1 when a target is missed.
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path

import common

ARCHIVE = Path("/usr/src/linux-source-6.1.tar.xz")
TARGET_MIB = 64.0
TARGET_SMALL_MS = 10.0
TARGET_DISK = 1.2
# The ledger with its second name, its fold and what is written from it: they grow with what is recorded, not captured.
LEDGER = ["events.jsonl", "ledger-*.jsonl", "fold.cache", "battles"]
LEDGER += [name + ".json" for name in ("recovery", "attempt_history", "checkpoints", "active_checkpoint")]


class Bench:
    """A repository with a checkout, and what runs in it."""

    def __init__(self, recover, work, root):
        self.recover_path = recover
        self.root = root
        self.env = common.environment(work)
        self.index = work / f"{root.name}.private-index"
        self.count = 0
        # No change is ever the same as one of an earlier run, whose objects are still there.
        self.of_run = f"{time.time_ns():x}"

    def git(self, *args, index=None, folder=None):
        env = self.env | ({"GIT_INDEX_FILE": str(index)} if index else {})
        command = ["git", *args]
        return subprocess.run(command, cwd=folder or self.root, env=env, check=True, capture_output=True, text=True).stdout

    def timed(self, command, env=None):
        return common.measure(command, self.root, env or self.env)[0]

    def recover(self, *args):
        return self.timed([self.recover_path, "--json", *args])

    def memory(self, *args):
        return common.anonymous([self.recover_path, "--json", *args], self.root, self.env)

    def reference(self, line="git add -A && git write-tree", index=None):
        return self.timed(["sh", "-c", line], self.env | {"GIT_INDEX_FILE": str(index or self.index)})

    def prepare(self):
        """A commit of everything in one pack, and an index that knows the files."""
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "first")
        self.git("repack", "-adq", "--window=0")
        self.git("prune-packed")
        # What the copy left to be written is none of the measurements.
        os.sync()
        # Older than the index, so that no file has to be read again for being as young as it.
        time.sleep(1.1)
        self.settle()

    def settle(self):
        """Both caches are brought up to date with the tree, and the user's index with it."""
        subprocess.run(["git", "update-index", "-q", "--refresh"], cwd=self.root, env=self.env, check=False)
        if not self.index.exists():
            shutil.copy2(self.root / ".git/index", self.index)
        self.recover("checkpoint", "create")
        self.reference()
        # What was written until here is no part of what is measured.
        os.sync()

    def forget(self):
        """As if no checkpoint had ever been taken here."""
        shutil.rmtree(self.root / ".git/recover", ignore_errors=True)
        shutil.rmtree(self.root / ".ultraplan", ignore_errors=True)
        names = self.git("for-each-ref", "--format=delete %(refname)", "refs/recover")
        command = ["git", "update-ref", "--stdin"]
        subprocess.run(command, cwd=self.root, env=self.env, check=True, input=names, text=True)

    def latest(self):
        return self.git("for-each-ref", "--format=%(refname)", "refs/recover").split()[-1].rsplit("/", 1)[1]

    def files(self):
        listed = self.git("ls-files", "-z").split("\0")[:-1]
        regular = (path for path in listed if (self.root / path).is_file() and not (self.root / path).is_symlink())
        return [path for path in regular if not path.endswith(".gitignore")]

    def edit(self, paths):
        self.count += 1
        for path in paths:
            with open(self.root / path, "ab") as file:
                file.write(f"\nchange {self.count} of {self.of_run}\n".encode())

    def put_back(self, paths):
        command = ["git", "checkout", "-q", "HEAD", "--pathspec-from-file=-", "--pathspec-file-nul"]
        subprocess.run(command, cwd=self.root, env=self.env, check=True, input="\0".join(paths), text=True)


def unchanged(bench, runs):
    """Nothing changed: G, `checkpoint create` and the same with `--if-changed`."""
    taken = {"G": [], "create": [], "if-changed": []}
    bench.settle()
    for _ in range(runs):
        taken["create"].append(bench.recover("checkpoint", "create"))
        taken["G"].append(bench.reference())
        taken["if-changed"].append(bench.recover("checkpoint", "create", "--if-changed"))
    return {name: statistics.median(values) for name, values in taken.items()}


def changed(bench, runs, chosen):
    """10 files edited, 10 new, 3 deleted."""
    files = chosen.sample(bench.files(), 13)

    def change():
        bench.edit(files[:10])
        folders = [(bench.root / path).parent for path in files[:10]]
        new = [folder / f"new-file-{number}" for number, folder in enumerate(folders)]
        for path in new:
            path.write_text(f"new in change {bench.count} of {bench.of_run}\n")
        for path in files[10:]:
            (bench.root / path).unlink()
        return new

    def back(new):
        for path in new:
            path.unlink()
        bench.put_back(files)
        bench.settle()

    return alternate(runs, change, back, lambda: bench.recover("checkpoint", "create"), bench.reference)


def alternate(runs, change, back, ours, theirs):
    """Medians of both, each on a change of its own, in turn."""
    taken = ([], [])
    for _ in range(runs):
        for values, measure in zip(taken, (ours, theirs)):
            made = change()
            values.append(measure())
            back(made)
    return tuple(statistics.median(values) for values in taken)


def after_build(bench, runs, chosen, work):
    """3 files edited, after a build has written a gigabyte that is not on disk yet, and the same when all is on disk."""
    files, built = chosen.sample(bench.files(), 3), work / "built"

    def build():
        with open(built, "wb") as file:
            for _ in range(1024):
                file.write(b"x" * (1 << 20))

    taken = {"quiet": [], "built": [], "G built": []}
    for _ in range(runs):
        for name, values in taken.items():
            bench.edit(files)
            if name != "quiet":
                build()
            values.append(bench.reference() if name == "G built" else bench.recover("checkpoint", "create"))
            built.unlink(missing_ok=True)
            bench.put_back(files)
            bench.settle()
    return {name: statistics.median(values) for name, values in taken.items()}


def first(bench, runs):
    """The first capture in a normal checkout, beside G as it is when it has been called before."""
    bench.settle()
    mine = lambda: bench.recover("checkpoint", "create")
    return alternate(runs, bench.forget, lambda _: None, mine, bench.reference)


def first_without_stat(bench, runs, work):
    """The first capture with an index that knows no file's times: all content is read."""
    normal, bare, private = work / "normal-index", work / "bare-index", work / "bare-private-index"
    own = bench.root / ".git/index"
    shutil.copy2(own, normal)
    bare.unlink(missing_ok=True)
    bench.git("read-tree", "HEAD", index=bare)

    def change():
        bench.forget()
        shutil.copy2(bare, own)
        shutil.copy2(bare, private)

    mine = lambda: bench.recover("checkpoint", "create")
    pair = alternate(runs, change, lambda _: None, mine, lambda: bench.reference("git add -A", private))
    shutil.copy2(normal, own)
    bench.settle()
    return pair


def roll_back(bench, runs, chosen, count):
    """Changed files are put back, with the safety checkpoint that keeps the change."""
    files = chosen.sample(bench.files(), count)
    bench.settle()
    target = bench.latest()
    index = bench.root / ".git/index"

    def change():
        bench.edit(files)

    def back(_):
        left = bench.git("status", "--porcelain")
        if left:
            sys.exit(f"not put back:\n{left}")
        bench.settle()

    tree = bench.git("rev-parse", "HEAD^{tree}").strip()
    mine = lambda: bench.recover("rollback", "--to", target, "--edits", "discard")
    return alternate(runs, change, back, mine, lambda: bench.reference(f"git checkout -q {tree} -- .", index))


def size_of(folder, aside=()):
    """Bytes, and bytes of blocks, of everything below a folder but for the names that are set aside."""
    total = [0, 0]
    counts = lambda name: not any(fnmatch(name, pattern) for pattern in aside)
    for place, names, files in os.walk(folder):
        names[:] = filter(counts, names)
        total[1] += os.lstat(place).st_blocks * 512
        for name in filter(counts, files):
            found = os.lstat(os.path.join(place, name))
            total[0] += found.st_size
            total[1] += found.st_blocks * 512
    return total


def disk(bench, work, chosen, checkpoints=100):
    """What checkpoints of 10 changed files add, beside git's own objects for the same changes in another repository."""
    bench.settle()
    other = work / "reference.git"
    shutil.rmtree(other, ignore_errors=True)
    shutil.copytree(bench.root / ".git", other, symlinks=True)
    files = bench.files()
    env = {"GIT_DIR": str(other), "GIT_WORK_TREE": str(bench.root), "GIT_INDEX_FILE": str(bench.index)}
    line = "git add -A && git commit-tree -p HEAD -m change $(git write-tree)"
    places = (bench.root / ".git", bench.root / ".ultraplan/state")
    used = lambda: [sum(sizes) for sizes in zip(*(size_of(place, LEDGER) for place in places))]
    before, before_reference = used(), size_of(other / "objects")
    for _ in range(checkpoints):
        bench.edit(chosen.sample(files, 10))
        bench.recover("checkpoint", "create")
        bench.timed(["sh", "-c", line], bench.env | env)
    ours = [now - then for now, then in zip(used(), before)]
    theirs = [now - then for now, then in zip(size_of(other / "objects"), before_reference)]
    shutil.rmtree(other)
    return ours, theirs


def small(recover, work, runs):
    """A repository of 100 files in which nothing changed."""
    root = work / "small"
    shutil.rmtree(root, ignore_errors=True)
    (work / "small.private-index").unlink(missing_ok=True)
    make_tree(root, 100)
    bench = Bench(recover, work, root)
    bench.prepare()
    return unchanged(bench, runs)


def memory(bench, chosen):
    """Anonymous memory of a capture that knows nothing, of one that knows all, and of rollbacks of a quarter of the tree."""
    bench.settle()
    bench.forget()
    taken = {"first capture": bench.memory("checkpoint", "create")}
    taken["nothing changed"] = bench.memory("checkpoint", "create")
    target, files = bench.latest(), bench.files()

    def rollback():
        bench.edit(chosen.sample(files, len(files) // 4))
        return bench.memory("rollback", "--to", target, "--edits", "discard")

    taken["rollback of a quarter"] = rollback()
    # As in a clone: most of the objects are differences to others.
    bench.git("repack", "-adfq")
    taken["the same out of a pack of differences"] = rollback()
    # As it was, for a later call.
    bench.git("repack", "-adfq", "--window=0")
    return taken


def make_tree(root, count):
    """Text files of a few sizes, in folders of at most 40."""
    for number in range(count):
        folder = root / f"part{number // 1600}" / f"folder{number // 40}"
        if number % 40 == 0:
            folder.mkdir(parents=True)
        (folder / f"file{number}.txt").write_text(f"line of file {number}\n" * (20 + number % 400))


def make_source(options, root):
    if options.quick:
        make_tree(root, 4000)
    elif options.tree:
        own_git = lambda folder, _: [".git"] if Path(folder) == options.tree else []
        shutil.copytree(options.tree, root, symlinks=True, ignore=own_git)
    else:
        if not ARCHIVE.exists():
            sys.exit(f"{ARCHIVE} is missing: apt-get install linux-source-6.1, or --tree DIR")
        root.mkdir()
        subprocess.run(["tar", "-xf", str(ARCHIVE), "--strip-components=1", "-C", str(root)], check=True)
    ignore = root / ".gitignore"
    if ignore.exists():
        # Debian's own last lines leave out the whole source.
        lines = ignore.read_text().splitlines(keepends=True)
        ignore.write_text("".join(line for line in lines if line.strip() not in ("/*", "!/debian/")))


def measure(options, work):
    chosen = random.Random(1)
    root = work / "tree"
    bench = Bench(options.recover, work, root)
    if (work / "ready").exists():
        bench.forget()
        bench.git("reset", "-q", "--hard")
        bench.git("clean", "-qffdx")
        bench.settle()
    else:
        shutil.rmtree(root, ignore_errors=True)
        make_source(options, root)
        bench.prepare()
        (work / "ready").touch()
    runs = options.runs
    rows = []

    def row(case, ours, theirs, factor, of):
        held = ours <= factor * theirs
        figures = f"{ours * 1000:.1f} ms | {theirs * 1000:.1f} ms | {ours / theirs:.2f} | ≤ {factor} × {of}"
        add(case, figures, held)

    def add(case, figures, held):
        rows.append((f"| {case} | {figures} | {'pass' if held else '**fail**'} |", held))
        print(rows[-1][0], file=sys.stderr, flush=True)

    still = unchanged(bench, runs)
    row("nothing changed, `checkpoint create`", still["create"], still["G"], 0.42, "G")
    row("nothing changed, `--if-changed`", still["if-changed"], still["G"], 0.42, "G")
    row("10 files edited, 10 new, 3 deleted", *changed(bench, runs, chosen), 0.42, "G")
    built = after_build(bench, runs, chosen, work)
    row("3 files edited, a gigabyte not on disk", built["built"], built["quiet"], 1.2, "the same when it is")
    row("the same beside G", built["built"], built["G built"], 0.42, "G")
    row("first capture, normal checkout", *first(bench, runs), 1.3, "G warm")
    row("first capture, index without stat data", *first_without_stat(bench, runs, work), 1.0, "`git add -A`")
    row("roll back 1,000 changed files", *roll_back(bench, runs, chosen, 1000), 1.0, "`git checkout`")
    if len(bench.files()) > 20_000:
        row("roll back 20,000 changed files", *roll_back(bench, runs, chosen, 20_000), 1.2, "`git checkout`")
    little = small(options.recover, work, runs * 5)
    for name in ("create", "if-changed"):
        ms, git_ms = little[name] * 1000, little["G"] * 1000
        figures = f"{ms:.1f} ms | {git_ms:.1f} ms | {ms / git_ms:.2f} | ≤ {TARGET_SMALL_MS:.0f} ms"
        add(f"100 files, nothing changed, `{name}`", figures, ms <= TARGET_SMALL_MS)
    ours, theirs = disk(bench, work, chosen)
    for name, mine, git in zip(("bytes", "blocks"), ours, theirs):
        figures = f"{mine / 2**20:.2f} MiB | {git / 2**20:.2f} MiB | {mine / git:.2f} | ≤ {TARGET_DISK} × git"
        add(f"100 checkpoints of 10 changed files, {name}", figures, mine <= TARGET_DISK * git)
    for case, mib in memory(bench, chosen).items():
        add(f"anonymous memory, {case}", f"{mib:.0f} MiB | - | - | ≤ {TARGET_MIB:.0f} MiB", mib <= TARGET_MIB)
    return rows, len(bench.files()), bench.git("--version").strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recover", default=str(common.RECOVER), help="the program")
    parser.add_argument("--tree", type=Path, help="a folder to copy; its .git is left out")
    parser.add_argument("--work", type=Path, help="where to work; kept")
    parser.add_argument("--runs", type=int, help="runs of each case (default 7, with --quick 3)")
    parser.add_argument("--quick", action="store_true", help="a made-up tree of 4,000 files, to try it out")
    options = parser.parse_args()
    options.recover = str(Path(options.recover).resolve())
    options.runs = options.runs or (3 if options.quick else 7)
    if not os.access(options.recover, os.X_OK):
        sys.exit(f"{options.recover} is missing: cargo build --release, or --recover PATH")
    if options.work:
        options.work.mkdir(parents=True, exist_ok=True)
        rows, files, git = measure(options, options.work.resolve())
    else:
        with tempfile.TemporaryDirectory() as work:
            rows, files, git = measure(options, Path(work).resolve())
    print(f"{files} files, {os.cpu_count()} cores, {git}, medians of {options.runs} runs, whole processes.\n")
    print("| case | recover | reference | ratio | target | |\n| --- | --- | --- | --- | --- | --- |")
    print("\n".join(text for text, _ in rows))
    return 0 if all(held for _, held in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
