#!/usr/bin/env python3
"""What runs that are kept on a git server cost it: bytes and time of one push and one listing beside many other runs.

A run has one reference there; its state is a commit with a claim and a segment of events. The server is `git daemon` on
127.0.0.1, the client git itself: what is measured is the protocol, which recover has in common with every push. Prints a
table; the numbers in ARCHITECTURE.md come from it.
"""

import argparse
import os
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

ENV = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "bench",
    "GIT_AUTHOR_EMAIL": "bench@localhost",
    "GIT_COMMITTER_NAME": "bench",
    "GIT_COMMITTER_EMAIL": "bench@localhost",
}


def git(folder, *args, text=None):
    done = subprocess.run(["git", *args], cwd=folder, env=ENV, input=text, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Counter:
    """A proxy that counts bytes in both directions, and connections."""

    def __init__(self, target):
        self.target, self.sent, self.answered, self.connections = target, 0, 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def reset(self):
        self.sent = self.answered = self.connections = 0

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            self.connections += 1
            server = socket.create_connection(("127.0.0.1", self.target))
            for one, other, name in [(client, server, "sent"), (server, client, "answered")]:
                threading.Thread(target=self.copy, args=(one, other, name), daemon=True).start()

    def copy(self, one, other, name):
        while data := one.recv(1 << 16):
            setattr(self, name, getattr(self, name) + len(data))
            other.sendall(data)
        try:
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def state(work, number, parent=None):
    """A state as a run has it: a claim and the events of an attempt."""
    claim = '{"holder":"h","host":"runner-%d","nonce":"%032x","fencing":1,"released":false}' % (number, number)
    events = "".join('{"run_seq":%d,"sha256":"%064x","type":"attempt_ended","message":"tests failed"}\n' % (n, n * number) for n in range(8))
    blobs = [git(work, "hash-object", "-w", "--stdin", text=text) for text in (claim, events)]
    tree = git(work, "mktree", text=f"100644 blob {blobs[0]}\tclaim.json\n100644 blob {blobs[1]}\tevents.jsonl\n")
    return git(work, "commit-tree", tree, *(["-p", parent] if parent else []), "-m", "state")


def measure(root, runs):
    server, work = root / f"server-{runs}.git", root / f"work-{runs}"
    git(root, "init", "-q", "--bare", str(server))
    git(root, "init", "-q", str(work))
    first = state(work, 1)
    git(work, "push", "-q", str(server), f"{first}:refs/recover-runs/night")
    # All others are at a state of their own; here the same, as only the names and ids are sent.
    lines = "".join(f"create refs/recover-runs/run-{number:06} {first}\n" for number in range(1, runs))
    git(server, "update-ref", "--stdin", text=lines)
    git(server, "pack-refs", "--all")
    port = free_port()
    program = Path(git(root, "--exec-path")) / "git-daemon"
    daemon = subprocess.Popen(
        [program, "--reuseaddr", "--export-all", "--enable=receive-pack", "--listen=127.0.0.1", f"--port={port}", f"--base-path={root}"],
        env=ENV, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        counter = Counter(port)
        url = f"git://127.0.0.1:{counter.port}/{server.name}"
        rows, at = {}, first
        for number in range(5):
            new = state(work, number + 2, at)
            counter.reset()
            begun = time.monotonic()
            git(work, "push", "-q", f"--force-with-lease=refs/recover-runs/night:{at}", url, f"{new}:refs/recover-runs/night")
            took, at = time.monotonic() - begun, new
            rows.setdefault("push", []).append((took, counter.sent, counter.answered, counter.connections))
            counter.reset()
            begun = time.monotonic()
            git(work, "fetch", "-q", "--no-tags", url, "+refs/recover-runs/night:refs/tracking/night")
            rows.setdefault("fetch one", []).append((time.monotonic() - begun, counter.sent, counter.answered, counter.connections))
            counter.reset()
            begun = time.monotonic()
            git(work, "ls-remote", "--refs", url, "refs/recover-runs/*")
            rows.setdefault("list", []).append((time.monotonic() - begun, counter.sent, counter.answered, counter.connections))
        for what, all_of_it in rows.items():
            took, sent, answered, connections = sorted(all_of_it)[len(all_of_it) // 2]
            print(f"| {runs:,} | {what} | {took * 1000:.0f} ms | {sent:,} | {answered:,} | {connections} |", flush=True)
    finally:
        daemon.terminate()
        daemon.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, nargs="*", default=[10, 1_000, 100_000])
    args = parser.parse_args()
    print("| runs | what | median | bytes sent | bytes answered | connections |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for runs in args.runs:
            measure(Path(folder), runs)


if __name__ == "__main__":
    main()
