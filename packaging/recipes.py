"""What has the checksums of the archives of all targets: `install.sh`, the feature for dev containers, recipes for package
managers."""

import hashlib
from pathlib import Path

from pack import tar
from registries import name_of

HERE = Path(__file__).resolve().parent
HOMEBREW = {
    "aarch64-apple-darwin": "on_macos do\n    on_arm",
    "x86_64-apple-darwin": "on_macos do\n    on_intel",
    "aarch64-unknown-linux-musl": "on_linux do\n    on_arm",
    "x86_64-unknown-linux-musl": "on_linux do\n    on_intel",
}
NIX = {
    "aarch64-apple-darwin": "aarch64-darwin",
    "x86_64-apple-darwin": "x86_64-darwin",
    "aarch64-unknown-linux-musl": "aarch64-linux",
    "x86_64-unknown-linux-musl": "x86_64-linux",
}


def checksum(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def devcontainer(package, out, when):
    """The feature for dev containers, with the installer that has the checksums."""
    folder = HERE / "devcontainer"
    facts = (folder / "devcontainer-feature.json").read_text().replace("@VERSION@", package["version"])
    content = [
        (facts.encode(), "./devcontainer-feature.json", 0o644),
        ((folder / "install.sh").read_bytes(), "./install.sh", 0o755),
        ((out / "install.sh").read_bytes(), "./recover-install.sh", 0o755),
    ]
    return tar(out / "devcontainer-feature-recover.tgz", content, when)


def write(package, home, out, when):
    """Each recipe, from its template; then the checksums of all that is there."""
    version = package["version"]
    releases = f"{home}/releases/download/v{version}"
    start, end = f"recover-{version}-", ".tar.gz"
    targets = {path.name[len(start) : -len(end)]: path for path in sorted(out.glob(f"{start}*{end}"))}
    archives = {target: (f"{releases}/{path.name}", checksum(path)) for target, path in targets.items()}
    for target in archives:
        if target not in NIX:
            raise SystemExit(f"no recipe knows the target {target}")
    linux = {target.split("-")[0]: at for target, at in archives.items() if "linux" in target}
    words = {
        "NAME": name_of(package),
        "VERSION": version,
        "HOME": home,
        "RELEASES": releases,
        "DESCRIPTION": package["description"],
        "LICENSE": package["license"],
        "SUMS": "\n".join(f"{checksum(path)}  {path.name}" for path in targets.values()),
        "HOMEBREW": "\n".join(
            f'  {HOMEBREW[target]} do\n      url "{url}"\n      sha256 "{sum}"\n    end\n  end'
            for target, (url, sum) in archives.items()
        ),
        "NIX": "\n".join(
            f'        {NIX[target]} = {{ target = "{target}"; sha256 = "{sum}"; }};'
            for target, (_, sum) in archives.items()
        ),
        "ARCHES": " ".join(linux),
        "ARCH": "\n".join(
            f"source_{processor}=('{url}')\nsha256sums_{processor}=('{sum}')" for processor, (url, sum) in linux.items()
        ),
    }
    made = []
    for template, name in (
        ("install.sh", "install.sh"),
        ("recipes/formula.rb", f"{words['NAME']}.rb"),
        ("recipes/flake.nix", "flake.nix"),
        ("recipes/PKGBUILD", "PKGBUILD"),
    ):
        text = (HERE / template).read_text()
        for word, meaning in words.items():
            text = text.replace(f"@{word}@", meaning)
        made.append(out / name)
        made[-1].write_text(text)
    made.append(devcontainer(package, out, when))
    sums = out / "SHA256SUMS"
    sums.write_text("".join(f"{checksum(path)}  {path.name}\n" for path in sorted(out.iterdir()) if path != sums))
    return [*made, sums]
