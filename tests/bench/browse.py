#!/usr/bin/env python3
"""How long `recover browse` takes to show a run of many checkpoints, and to answer a key, on a terminal.

    python3 tests/bench/browse.py [RECOVER] [CHECKPOINTS] [RUNS]

RECOVER is the program (default target/release/recover). It makes a run of CHECKPOINTS iterations (default 10,000), which takes
a few minutes, then is looked through RUNS times. The reference in the same rounds is `git log` of as many commits, read to
its end. Ends with 1 when the median of something is over its target.
"""

import fcntl
import os
import pty
import select
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from common import environment, program, small_repository

# Milliseconds, and MiB.
TARGETS = {"first frame": 100.0, "a key": 50.0, "to the end": 50.0, "a search": 50.0, "a page": 250.0, "memory": 200.0}
SIZE = struct.pack("HHHH", 30, 120, 0, 0)


class Screen:
    """`recover browse` on a terminal of its own."""

    def __init__(self, command, folder, env):
        self.begun = time.perf_counter()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(2, termios.TIOCSWINSZ, SIZE)
            os.chdir(folder)
            os.execve(command[0], command, env | {"TERM": "xterm"})

    def read(self, seconds):
        """What is said within so long; nothing where it says nothing."""
        ready, _, _ = select.select([self.terminal], [], [], seconds)
        try:
            return os.read(self.terminal, 1 << 16) if ready else b""
        except OSError:
            return b""

    def until(self, wanted):
        """Waits for some text; milliseconds since the start."""
        said = b""
        while wanted not in said:
            new = self.read(60)
            if not new:
                sys.exit(f"browse never said {wanted}: {said[-500:]}")
            said += new
        return (time.perf_counter() - self.begun) * 1000

    def settle(self):
        """Until nothing is said for a while, or only that time passes; when something was said last."""
        begun = last = time.perf_counter()
        while self.read(0.3) and last < begun + 10:
            last = time.perf_counter()
        return last

    def press(self, keys):
        """Milliseconds until it answers, then until it has said all there is."""
        begun = time.perf_counter()
        os.write(self.terminal, keys)
        if not self.read(30):
            sys.exit(f"browse does not answer {keys}")
        first = time.perf_counter()
        return (first - begun) * 1000, (self.settle() - begun) * 1000

    def memory(self):
        """The peak resident set in MiB."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

    def end(self):
        os.write(self.terminal, b"q")
        while self.read(5):
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.terminal)
        if os.waitstatus_to_exitcode(status) != 0:
            sys.exit(f"browse ended with {os.waitstatus_to_exitcode(status)}")


def look(recover, work, env, taken):
    """Looks through it once."""
    screen = Screen([recover, "browse"], work, env)
    taken["first frame"].append(screen.until(b"iteration"))
    screen.settle()
    for key in (b"j", b"j", b"\x1b[6~", b"k"):
        taken["a key"].append(screen.press(key)[0])
    taken["to the end"].append(screen.press(b"G")[0])
    os.write(screen.terminal, b"/iteration 77 ")
    screen.settle()
    taken["a search"].append(screen.press(b"\r")[0])
    for page in (b"2", b"4", b"1"):
        taken["a page"].append(screen.press(page)[1])
    taken["memory"].append(screen.memory())
    screen.end()


def main():
    recover = program()
    checkpoints, runs = (int(sys.argv[at]) if len(sys.argv) > at else default for at, default in ((2, 10_000), (3, 10)))
    with tempfile.TemporaryDirectory() as home:
        env, work, beside = environment(home), Path(home, "work"), Path(home, "beside")
        small_repository(work, env)
        shutil.copytree(work, beside)
        begun = time.perf_counter()
        script = 'echo $RECOVER_ITERATION > "file$((RECOVER_ITERATION % 50)).txt"'
        command = [recover, "-q", "run", "--run", "night", "--iterations", str(checkpoints), "--", "sh", "-c", script]
        subprocess.run(command, cwd=work, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        made = subprocess.run([recover, "status", "--json"], cwd=work, env=env, check=True, stdout=subprocess.PIPE, text=True)
        if '"complete"' not in made.stdout:
            sys.exit("the run is not complete")
        print(f"{checkpoints:,} iterations in {time.perf_counter() - begun:.0f} s")
        commits = "".join(
            f"commit refs/heads/many\ncommitter a <a@example.com> {number} +0000\ndata 4\ntext\n" for number in range(checkpoints)
        )
        subprocess.run(["git", "fast-import", "--quiet"], cwd=beside, env=env, check=True, input=commits.encode())
        taken = {name: [] for name in (*TARGETS, "git log")}
        for _ in range(runs):
            begun = time.perf_counter()
            log = ["git", "log", "--oneline", "many"]
            subprocess.run(log, cwd=beside, env=env, check=True, stdout=subprocess.DEVNULL)
            taken["git log"].append((time.perf_counter() - begun) * 1000)
            look(recover, work, env, taken)
    print(f"{'median of ' + str(runs):14} {'taken':>11} {'most':>11} {'target':>11}")
    missed = 0
    for name, all_taken in taken.items():
        median, unit, target = statistics.median(all_taken), "MiB" if name == "memory" else "ms", TARGETS.get(name)
        missed += target is not None and median > target
        shown = f"{target:.0f} {unit}" if target else "-"
        print(f"{name:14} {f'{median:.1f} {unit}':>11} {f'{max(all_taken):.1f} {unit}':>11} {shown:>11}")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
