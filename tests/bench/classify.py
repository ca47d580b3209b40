#!/usr/bin/env python3
"""How fast `recover classify` reads a long log in which nothing matches, beside `wc -l` on the same file.

    python3 tests/bench/classify.py [RECOVER] [MIB]

RECOVER is the program (default target/release/recover), MIB the size of the log (default 100). Ends with 1 when a
target is missed.
"""

import shlex
import sys
import tempfile
from pathlib import Path

from common import environment, measure, program

TARGET_MIB_A_SECOND = 500.0
TARGET_PEAK_MIB = 64.0
ROUNDS = 5


def line(number):
    """One line of a build, a server, a test run."""
    kinds = (
        f"[{number}/2000000] Building CXX object src/net/CMakeFiles/net.dir/part_{number % 977}.cc.o",
        f"2026-11-01T10:{number % 60:02}:00.{number % 1000:03}Z INFO http: request {number} served in {number % 300} ms",
        f"test store::tests::case_{number} ... ok",
        f"   Compiling part v0.{number % 90}.{number % 10} (/srv/app/crates/part)",
        f"GET /api/v1/items/{number} 200 {number % 80}ms - {number % 4000}",
        f"Downloaded part-{number % 50}.tar.gz ({number % 900} kB) from mirror {number % 4}",
    )
    return kinds[number % len(kinds)] + "\n"


def write_log(path, mib):
    block = "".join(line(number) for number in range(20000))
    with open(path, "w", encoding="utf-8") as log:
        while log.tell() < mib << 20:
            log.write(block)


def main():
    recover = program()
    mib = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    with tempfile.TemporaryDirectory() as home:
        env = environment(home)
        log = str(Path(home, "long.log"))
        write_log(log, mib)
        classify = [recover, "classify", "--exit-code", "1", "--loop", "build"]
        commands = {
            "classify --log": [*classify, "--log", log],
            "classify --stdout": [*classify, "--stdout", log],
            "wc -l": ["wc", "-l", log],
            "grep -c": ["sh", "-c", f"grep -c error {shlex.quote(log)} || true"],
        }
        best = {}
        peak = {}
        for _ in range(ROUNDS):
            for name, command in commands.items():
                seconds, resident = measure(command, home, env)
                best[name] = min(best.get(name, seconds), seconds)
                peak[name] = max(peak.get(name, resident), resident)
    print(f"{f'{mib} MiB, best of {ROUNDS}':24} {'seconds':>8} {'MiB/s':>8} {'peak MiB':>9}")
    for name in commands:
        print(f"{name:24} {best[name]:8.3f} {mib / best[name]:8.0f} {peak[name]:9.1f}")
    ours = [name for name in commands if name.startswith("classify")]
    print(f"targets: {TARGET_MIB_A_SECOND:.0f} MiB/s or more, below {TARGET_PEAK_MIB:.0f} MiB")
    missed = [] if all(mib / best[name] >= TARGET_MIB_A_SECOND for name in ours) else ["throughput"]
    missed += [] if all(peak[name] < TARGET_PEAK_MIB for name in ours) else ["memory"]
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
