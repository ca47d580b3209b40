#!/usr/bin/env python3
"""How long a whole `recover retry-status --json` takes in a small repository.

    python3 tests/bench/startup.py [RECOVER] [RUNS]

RECOVER is the program (default target/release/recover). `git rev-parse HEAD` and `true` run in between as references.
Ends with 1 when the median is over the target.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import environment, program, small_repository

TARGET_MS = 10.0


def milliseconds(command, folder, env):
    begun = time.perf_counter()
    subprocess.run(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - begun) * 1000


def main():
    recover = program()
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    with tempfile.TemporaryDirectory() as home:
        env = environment(home)
        work = Path(home, "work")
        small_repository(work, env)
        failing = [recover, "-q", "run", "--no-wait", "--", "false"]
        subprocess.run(failing, cwd=work, env=env, stdout=subprocess.DEVNULL, check=False)
        commands = {
            "recover retry-status --json": [recover, "retry-status", "--json"],
            "git rev-parse HEAD": ["git", "rev-parse", "HEAD"],
            "true": ["true"],
        }
        taken = {name: [] for name in commands}
        # Interleaved, so that a busy moment meets all of them; the first round warms up.
        for number in range(runs + 1):
            for name, command in commands.items():
                spent = milliseconds(command, work, env)
                if number:
                    taken[name].append(spent)
    print(f"{'whole process, ' + str(runs) + ' runs':34} {'median':>9} {'p95':>9} {'target':>9}")
    for name, values in taken.items():
        p95 = sorted(values)[int(len(values) * 0.95)]
        target = f"{TARGET_MS:.1f} ms" if name.startswith("recover") else "-"
        print(f"{name:34} {statistics.median(values):6.2f} ms {p95:6.2f} ms {target:>9}")
    median = statistics.median(taken["recover retry-status --json"])
    if median > TARGET_MS:
        print(f"missed: {median:.2f} ms is over {TARGET_MS} ms")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
