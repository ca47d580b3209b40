#!/usr/bin/env python3
"""What `recover run` costs a child that floods its output, beside `CMD | tee FILE`.

    python3 tests/bench/flood.py [RECOVER] [SIZE]

RECOVER is the program (default target/release/recover), SIZE what `head -c` takes (default 1G). Both write the child's
output to /dev/null and keep it. Ends with 1 when a target is missed.
"""

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from common import environment, measure, program

TARGET_MIB = 60.0
TARGET_RATIO = 0.7
ROUNDS = 3


def bytes_of(size):
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(size[:-1]) * units[size[-1]] if size[-1] in units else int(size)


def main():
    recover = program()
    size = sys.argv[2] if len(sys.argv) > 2 else "1G"
    flood = f"yes | head -c {size}"
    with tempfile.TemporaryDirectory() as home:
        env = environment(home)
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
