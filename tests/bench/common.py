"""What the benchmarks share: the program they measure, an environment of its own, and a process's time and memory."""

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECOVER = ROOT / "target/release/recover"


def program():
    """The program that the first argument names."""
    return str(Path(sys.argv[1] if len(sys.argv) > 1 else RECOVER).resolve())


def environment(home):
    """Nothing inherited but the path; and git tidies nothing up in the background."""
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com"}
    names |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in names.items()}
    git = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    git |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "gc.auto", "GIT_CONFIG_VALUE_0": "0"}
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"} | names | git


def small_repository(folder, env):
    """A new repository of fifty files and one commit."""
    folder.mkdir()
    for number in range(50):
        Path(folder, f"file{number}.txt").write_text(f"{number}\n")
    for line in (["git", "init", "-q"], ["git", "add", "."], ["git", "commit", "-qm", "first"]):
        subprocess.run(line, cwd=folder, env=env, check=True)


def anonymous(command, folder, env):
    """The most anonymous memory that was seen, in MiB: mapped packs are the page cache's."""
    null = subprocess.DEVNULL
    child = subprocess.Popen(command, cwd=folder, env=env, stdin=null, stdout=null)
    most = 0
    while child.poll() is None:
        lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
        most = max([most, *(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))])
        time.sleep(0.0005)
    if child.returncode != 0:
        sys.exit(f"{shlex.join(map(str, command))} ended with {child.returncode}")
    return most / 1024


def measure(command, folder, env):
    """Seconds, and the peak resident set in MiB: that of the process or of a child it waited for, whichever is more."""
    begun = time.perf_counter()
    null = subprocess.DEVNULL
    child = subprocess.Popen(command, cwd=folder, env=env, stdin=null, stdout=null)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{shlex.join(map(str, command))} ended with {child.returncode}")
    return seconds, usage.ru_maxrss / 1024
