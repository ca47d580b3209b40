"""Packages for npm and pip. Their names differ from the program's, which others have there."""

import base64
import hashlib
import json
from pathlib import Path

from pack import tar, zipped

ROOT = Path(__file__).resolve().parents[1]
# Each target as npm and as pip name it.
PLATFORMS = {
    "x86_64-unknown-linux-musl": ("linux-x64", "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64"),
    "aarch64-unknown-linux-musl": ("linux-arm64", "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64"),
    "x86_64-apple-darwin": ("darwin-x64", "macosx_10_12_x86_64"),
    "aarch64-apple-darwin": ("darwin-arm64", "macosx_11_0_arm64"),
}


def name_of(package):
    """What it is called where `recover` is taken."""
    return package["metadata"]["registries"]["name"]


def read(path):
    return (ROOT / path).read_bytes()


def npm_package(package, name, out, when, more, content):
    facts = {
        "name": name,
        "version": package["version"],
        "description": package["description"],
        "license": package["license"],
        **more,
    }
    content = [
        (json.dumps(facts, indent=2).encode() + b"\n", "package/package.json", 0o644),
        (read("LICENSE"), "package/LICENSE", 0o644),
        *content,
    ]
    return tar(out / f"{name}-{package['version']}.tgz", content, when)


def npm(package, binary, target, out, when):
    """The package with the program for one platform, which npm leaves out on every other."""
    platform, _ = PLATFORMS[target]
    system, processor = platform.split("-")
    more = {"os": [system], "cpu": [processor], "files": ["bin"]}
    content = [(binary.read_bytes(), "package/bin/recover", 0o755)]
    return npm_package(package, f"{name_of(package)}-{platform}", out, when, more, content)


def npm_launcher(package, out, when):
    """The package that people name: it starts the one for their platform."""
    name, version = name_of(package), package["version"]
    more = {
        "keywords": package["keywords"],
        "bin": {"recover": "bin/recover.js"},
        "files": ["bin"],
        "engines": {"node": ">=14"},
        "optionalDependencies": {f"{name}-{platform}": version for platform, _ in PLATFORMS.values()},
    }
    launcher = read("packaging/launcher.js").replace(b"@NAME@", name.encode())
    content = [(launcher, "package/bin/recover.js", 0o755), (read("README.md"), "package/README.md", 0o644)]
    return npm_package(package, name, out, when, more, content)


def wheel(package, binary, target, out, when):
    """A wheel with the program among its scripts, for every Python 3."""
    name, version = name_of(package), package["version"]
    base = f"{name.replace('-', '_')}-{version}"
    _, tags = PLATFORMS[target]
    metadata = (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {package['description']}\n"
        f"License: {package['license']}\nKeywords: {','.join(package['keywords'])}\nRequires-Python: >=3\n"
        "Description-Content-Type: text/markdown\n\n"
    )
    about = "Wheel-Version: 1.0\nGenerator: recover\nRoot-Is-Purelib: false\n"
    about += "".join(f"Tag: py3-none-{tag}\n" for tag in tags.split("."))
    content = [(binary.read_bytes(), f"{base}.data/scripts/recover", 0o755)]
    for page in sorted((ROOT / "man").iterdir()):
        content.append((page.read_bytes(), f"{base}.data/data/share/man/man{page.suffix[1:]}/{page.name}", 0o644))
    info = f"{base}.dist-info"
    content += [
        (read("LICENSE"), f"{info}/LICENSE", 0o644),
        (metadata.encode() + read("README.md"), f"{info}/METADATA", 0o644),
        (about.encode(), f"{info}/WHEEL", 0o644),
    ]
    record = "".join(f"{place},sha256={digest(data)},{len(data)}\n" for data, place, _ in content)
    content.append((f"{record}{info}/RECORD,,\n".encode(), f"{info}/RECORD", 0o644))
    return zipped(out / f"{base}-py3-none-{tags}.whl", content, when)


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
