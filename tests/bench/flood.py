#!/usr/bin/env python3
"""What `recover run` costs a child that floods its output, beside `CMD | tee FILE`.

    python3 tests/bench/flood.py [RECOVER] [SIZE]

RECOVER is the program (default target/release/recover), SIZE what `head -c` takes (default 1G). Both write the child's
output to /dev/null and keep it. Ends with 1 when a target is missed.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TARGET_MIB = 60.0
TARGET_RATIO = 0.7
ROUNDS = 3


def bytes_of(size):
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(size[:-1]) * units[size[-1]] if size[-1] in units else int(size)


def measure(command, folder, env):
    """Seconds, and the peak resident set in MiB: that of the process or of a child it waited for, whichever is more."""
    begun = time.perf_counter()
    with open(os.devnull, "wb") as null:
        child = subprocess.Popen(command, cwd=folder, env=env, stdout=null, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{shlex.join(command)} ended with {child.returncode}")
    return time.perf_counter() - begun, usage.ru_maxrss / 1024


def main():
    root = Path(__file__).resolve().parents[2]
    recover = str(Path(sys.argv[1] if len(sys.argv) > 1 else root / "target/release/recover").resolve())
    size = sys.argv[2] if len(sys.argv) > 2 else "1G"
    flood = f"yes | head -c {size}"
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com"}
    names |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in names.items()}
    git = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ["PATH"], "HOME": home, "LC_ALL": "C.UTF-8"} | names | git
        work = Path(home, "work")
        work.mkdir()
        Path(work, "a.txt").write_text("one\n")
        for line in (["git", "init", "-q"], ["git", "add", "."], ["git", "commit", "-qm", "first"]):
            subprocess.run(line, cwd=work, env=env, check=True)
        kept = Path(home, "kept")
        commands = {
            "recover run": [recover, "run", "--", "sh", "-c", flood],
            "tee": ["sh", "-c", f"{flood} | tee {shlex.quote(str(kept))}"],
        }
        best = {}
        peak = {}
        for _ in range(ROUNDS):
            for name, command in commands.items():
                seconds, mib = measure(command, work, env)
                best[name] = min(best.get(name, seconds), seconds)
                peak[name] = max(peak.get(name, mib), mib)
    rate = {name: bytes_of(size) / (1 << 20) / seconds for name, seconds in best.items()}
    ratio = rate["recover run"] / rate["tee"]
    print(f"{flood + ', best of ' + str(ROUNDS):34} {'seconds':>8} {'MiB/s':>8} {'peak MiB':>9}")
    for name in commands:
        print(f"{name:34} {best[name]:8.2f} {rate[name]:8.0f} {peak[name]:9.1f}")
    print(f"throughput against tee: {ratio:.2f} (target {TARGET_RATIO} or more); memory target: below {TARGET_MIB:.0f} MiB")
    missed = [] if ratio >= TARGET_RATIO else ["throughput"]
    missed += [] if peak["recover run"] < TARGET_MIB else ["memory"]
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
