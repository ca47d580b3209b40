#!/usr/bin/env python3
"""Makes what is installed: a static binary in an archive, packages for Debian, npm and pip, what is made of them, and checksums.

    packaging/build.py [--profile dist] [--target x86_64-unknown-linux-musl] [--out dist] [--home URL]
    packaging/build.py --collect [--out dist] [--home URL]

The first builds for one target; the second makes only what names the archives of all targets, from those that are in `--out`:
the launcher for npm, `install.sh`, the feature for dev containers, recipes for Homebrew, Nix and Arch, and the checksums. `--home` is where it is kept;
archives are then looked for in `URL/releases/download/vVERSION`.

Needs cargo and the target (`rustup target add TARGET`); for Linux also musl-gcc for the vendored libgit2, and dpkg-deb; on
Debian and Ubuntu `apt-get install musl-tools dpkg`. What the Debian package holds is said by `[package.metadata.deb]` of
Cargo.toml, so that `cargo deb` makes the same. The same sources and tools make the same bytes.
"""

import argparse
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import recipes
import registries
from pack import tar

ROOT = Path(__file__).resolve().parents[1]
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def output(*words):
    return subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def epoch():
    """The time of everything in an archive: that of the commit."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    try:
        return int(output("git", "log", "-1", "--format=%ct"))
    except (OSError, subprocess.CalledProcessError):
        return 0


def build(profile, target):
    """Builds the binary; where it is."""
    if shutil.which("rustup") and target not in output("rustup", "target", "list", "--installed").split():
        subprocess.run(["rustup", "target", "add", target], cwd=ROOT, check=True)
    env = dict(os.environ)
    if profile == "dev":
        # Nobody debugs what is packed for a test.
        env |= {"CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_PROFILE_DEV_STRIP": "symbols"}
    command = ["cargo", "build", "--locked", "--bin", "recover", "--profile", profile, "--target", target]
    subprocess.run(command, cwd=ROOT, env=env, check=True)
    folder = Path(env.get("CARGO_TARGET_DIR", ROOT / "target"))
    return folder / target / {"dev": "debug"}.get(profile, profile) / "recover"


def files(assets, binary):
    """What a package holds, as its metadata says: the source, the place, the mode."""
    for source, place, mode in assets:
        found = [binary] if source == "target/release/recover" else sorted(ROOT.glob(source))
        if not found:
            sys.exit(f"Cargo.toml names {source}, which is not there")
        for path in found:
            yield path, place + path.name if place.endswith("/") else place, int(mode, 8)


def archive(package, binary, target, out, when):
    """The binary with its pages, as `cargo binstall` expects it."""
    name = f"recover-{package['version']}-{target}"
    content = [(binary, "recover", 0o755), (ROOT / "README.md", "README.md", 0o644), (ROOT / "LICENSE", "LICENSE", 0o644)]
    for folder in ("man", "completions"):
        content += [(path, f"{folder}/{path.name}", 0o644) for path in sorted((ROOT / folder).iterdir())]
    content = [(source.read_bytes(), f"{name}/{place}", mode) for source, place, mode in content]
    return tar(out / f"{name}.tar.gz", content, when)


def control(package, deb, architecture, size):
    lines = {
        "Package": deb["name"],
        "Version": f"{package['version']}-1",
        "Architecture": architecture,
        "Maintainer": deb["maintainer"],
        "Installed-Size": str(size // 1024 + 1),
        "Recommends": deb["recommends"],
        "Section": deb["section"],
        "Priority": deb["priority"],
        "Description": package["description"],
    }
    text = "".join(f"{name}: {value}\n" for name, value in lines.items())
    return text + "".join(f" {line or '.'}\n" for line in deb["extended-description"].strip().splitlines())


def debian(package, binary, target, out, when):
    """The Debian package."""
    deb = package["metadata"]["deb"]
    architecture = ARCHITECTURES[target.split("-")[0]]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        size, sums = 0, []
        for source, place, mode in files(deb["assets"], binary):
            content = source.read_bytes()
            if place.startswith("usr/share/man/"):
                place, content = f"{place}.gz", gzip.compress(content, 9, mtime=0)
            path = root / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(mode)
            size += len(content)
            sums.append(f"{hashlib.md5(content).hexdigest()}  {place}\n")
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN/control").write_text(control(package, deb, architecture, size))
        (root / "DEBIAN/md5sums").write_text("".join(sorted(sums)))
        for path in (root, *root.rglob("*")):
            if path.is_dir():
                path.chmod(0o755)
        for path in ("DEBIAN/control", "DEBIAN/md5sums"):
            (root / path).chmod(0o644)
        path = out / f"{deb['name']}_{package['version']}-1_{architecture}.deb"
        env = dict(os.environ) | {"SOURCE_DATE_EPOCH": str(when)}
        command = ["dpkg-deb", "--build", "--root-owner-group", "-Zgzip", root, path]
        subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="dist", help="of cargo; dev is for tests")
    parser.add_argument("--target", default="x86_64-unknown-linux-musl")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--home", default="https://git.example.com/recover", help="where it is kept")
    parser.add_argument("--collect", action="store_true", help="build nothing: only what names the archives of all targets")
    args = parser.parse_args()
    package = json.loads(output("cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"))["packages"][0]
    args.out.mkdir(parents=True, exist_ok=True)
    when = epoch()
    made = []
    if not args.collect:
        binary = build(args.profile, args.target)
        kinds = [archive, registries.npm, registries.wheel] + [debian] * ("linux" in args.target)
        made = [make(package, binary, args.target, args.out, when) for make in kinds]
    made += [registries.npm_launcher(package, args.out, when), *recipes.write(package, args.home, args.out, when)]
    for path in made:
        print(f"{path} ({path.stat().st_size / (1 << 20):.1f} MiB)")


if __name__ == "__main__":
    main()
