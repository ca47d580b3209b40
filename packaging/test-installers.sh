#!/usr/bin/env bash
# Installs what packaging/build.py made by each installer that takes it, in a prefix with a home of its own, does the main job
# and removes it without a trace; then lints the recipes of systems that are not here. No network but 127.0.0.1. What an
# installer is missing for is said: npm, python3, uv, ruby, nix-instantiate, shellcheck.
#
#     packaging/test-installers.sh [DIST]
set -euo pipefail
here=$(realpath "$(dirname "$0")")
dist=$(realpath "${1:-$here/../dist}")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../Cargo.toml" | head -1)
name=$(sed -n '/^\[package.metadata.registries\]/,/^$/s/^name = "\(.*\)"/\1/p' "$here/../Cargo.toml")
target=$(uname -m)-unknown-linux-musl
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT

fail() {
    printf 'failed: %s\n' "$*" >&2
    [ ! -s "$work/said" ] || cat "$work/said" >&2
    exit 1
}

# A command that must work, in a home and with temporary files of its own; what it says is in $work/said.
quietly() {
    env -i HOME="$work/home" TMPDIR="$work/tmp" PATH="$PATH" LC_ALL=C.UTF-8 \
        npm_config_registry="$url/npm" npm_config_cache="$work/npm" npm_config_update_notifier=false \
        PIP_DISABLE_PIP_VERSION_CHECK=1 UV_CACHE_DIR="$work/uv" UV_TOOL_DIR="$work/uv-tools" "$@" > "$work/said" 2>&1
}
works() { quietly "$@" || fail "$* ended with $?"; }
refused() { ! quietly "$@" || fail "$* should be refused"; }
said() { grep -qF -- "$1" "$work/said" || fail "it does not say '$1'"; }

# The files below a folder; a byte cache of Python is nobody's.
files() { find "$1" ! -type d ! -path '*/__pycache__/*' 2> /dev/null | sort; }

# The main job, with the words that start the program; nothing of it is left in the home.
main_job() {
    local before
    before=$(files "$work/home")
    rm -rf "$work/project"
    git init -q "$work/project"
    works "$@" --version
    said "recover $version"
    works "$@" -C "$work/project" run -- true
    works "$@" -C "$work/project" status
    said "complete"
    works "$@" -C "$work/project" forget --all --yes
    [ "$(files "$work/home")" = "$before" ] || fail "left in the home: $(diff <(echo "$before") <(files "$work/home"))"
}

# What must be gone again after an installer removed it.
without_trace() { [ "$(files "$1")" = "$2" ] || fail "left behind: $(diff <(echo "$2") <(files "$1"))"; }

mkdir -p "$work"/{home,tmp,served/npm}
(cd "$dist" && sha256sum --quiet -c SHA256SUMS)
ln -s "$dist" "$work/served/dist"
python3 -u -m http.server 0 --bind 127.0.0.1 --directory "$work/served" > "$work/server.log" 2>&1 &
server=$!
for _ in $(seq 100); do
    port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$work/server.log")
    [ -z "$port" ] || break
    sleep 0.1
done
url=http://127.0.0.1:$port

echo "the installer, from a folder and over HTTP"
for from in "$dist" "$url/dist"; do
    works sh "$dist/install.sh" --prefix "$work/prefix" --from "$from"
    [ -s "$work/prefix/share/man/man1/recover-run.1" ] || fail "no manual was installed"
    main_job "$work/prefix/bin/recover"
    # Over itself.
    works sh "$dist/install.sh" --prefix "$work/prefix" --from "$from"
    works sh "$dist/install.sh" --prefix "$work/prefix" --uninstall
    [ -z "$(find "$work/prefix" -mindepth 1)" ] || fail "left behind: $(find "$work/prefix" -mindepth 1)"
    rmdir "$work/prefix"
done
refused sh "$dist/install.sh" --prefix "$work/prefix" --uninstall
mkdir "$work/wrong"
cp "$dist/recover-$version-$target.tar.gz" "$work/wrong"
printf 'x' >> "$work/wrong/recover-$version-$target.tar.gz"
refused sh "$dist/install.sh" --prefix "$work/prefix" --from "$work/wrong"
said "nothing was installed"
refused sh "$dist/install.sh" --prefix "$work/prefix" --from "$url/nowhere"
# Cut off on its way.
head -c -30 "$dist/install.sh" > "$work/cut.sh"
quietly sh "$work/cut.sh" --prefix "$work/prefix" --from "$dist" || true
[ ! -e "$work/prefix" ] || fail "left behind: $(files "$work/prefix")"
[ -z "$(files "$work/tmp")" ] || fail "left behind: $(files "$work/tmp")"

if command -v npm > /dev/null; then
    echo "npm, from a registry of its own"
    # What a registry says of a package, as files that a server of files can serve.
    python3 - "$dist" "$work/served/npm" "$url/dist" << 'END'
import base64, hashlib, json, pathlib, sys, tarfile
dist, served, url = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
for path in dist.glob("recover-*.tgz"):
    with tarfile.open(path) as archive:
        facts = json.load(archive.extractfile("package/package.json"))
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
    facts["dist"] = {"tarball": f"{url}/{path.name}", "integrity": integrity}
    name, version = facts["name"], facts["version"]
    packument = {"name": name, "dist-tags": {"latest": version}, "versions": {version: facts}}
    (served / name).write_text(json.dumps(packument))
END
    mkdir "$work/global"
    works npm install --global --prefix "$work/global" "$name"
    main_job "$work/global/bin/recover"
    # Codes and signals go through the launcher.
    code=0
    quietly "$work/global/bin/recover" -C "$work/project" rollback --to nowhere || code=$?
    [ "$code" = 3 ] || [ "$code" = 4 ] || fail "the launcher ended with $code"
    works npm uninstall --global --prefix "$work/global" "$name"
    without_trace "$work/global" ""
    main_job npx --yes "$name"
    # Without the package for this platform it says so.
    works npm install --global --prefix "$work/global" "$name"
    rm -r "$work/global/lib/node_modules/$name/node_modules"
    refused "$work/global/bin/recover" --version
    said "is not installed"
else
    echo "skipped: npm is not here"
fi

if python3 -c 'import venv, ensurepip' 2> /dev/null; then
    echo "pip"
    works python3 -m venv "$work/venv"
    before=$(files "$work/venv")
    works "$work/venv/bin/pip" install --no-index --find-links "$dist" "$name"
    [ -s "$work/venv/share/man/man1/recover-run.1" ] || fail "no manual was installed"
    main_job "$work/venv/bin/recover"
    works "$work/venv/bin/pip" uninstall --yes "$name"
    without_trace "$work/venv" "$before"
else
    echo "skipped: venv is not here"
fi
if command -v uv > /dev/null; then
    echo "uvx"
    main_job uv tool run --offline --no-index --find-links "$dist" --from "$name" recover
else
    echo "skipped: uv is not here"
fi

echo "the action, from a release on a server"
mkdir -p "$work/served/owner/repository/releases/download"
ln -s "$dist" "$work/served/owner/repository/releases/download/v$version"
mkdir "$work/temp"
works RUNNER_TEMP="$work/temp" GITHUB_SERVER_URL="$url" ACTION_REPOSITORY=owner/repository ACTION_REF="v$version" \
    GITHUB_ACTION_PATH="$here/action" GITHUB_PATH="$work/path" bash "$here/action/action.sh" install
said "recover $version"
main_job "$(cat "$work/path")/recover"

echo "the package for Arch: what its recipe installs"
mkdir "$work/src" "$work/pkg"
tar -xzf "$dist/recover-$version-$target.tar.gz" -C "$work/src"
(
    set -e
    # shellcheck disable=SC2034
    CARCH=$(uname -m) pkgdir=$work/pkg
    # shellcheck disable=SC1091
    . "$dist/PKGBUILD"
    cd "$work/src"
    package
    archive=source_$CARCH sum=sha256sums_$CARCH
    echo "${!sum}  $dist/$(basename "${!archive}")" | sha256sum --quiet -c
)
main_job "$work/pkg/usr/bin/recover"

echo "recipes for all systems, which are never run here"
mkdir "$work/all"
for other in {x86_64,aarch64}-{unknown-linux-musl,apple-darwin}; do
    cp "$dist/recover-$version-$target.tar.gz" "$work/all/recover-$version-$other.tar.gz"
done
"$here/build.py" --collect --out "$work/all" > /dev/null
for folder in "$dist" "$work/all"; do
    cd "$folder"
    sh -n install.sh
    bash -n PKGBUILD
    ! grep -n '@[A-Z]*@' install.sh PKGBUILD flake.nix "$name.rb" || fail "a word of a template is left"
    if command -v shellcheck > /dev/null; then
        shellcheck install.sh "$here"/devcontainer/*.sh
        # What makepkg reads, and what it sets.
        shellcheck --shell bash --exclude SC2034,SC2154,SC2164 PKGBUILD
    else
        echo "skipped: shellcheck is not here"
    fi
    if command -v ruby > /dev/null; then ruby -wc "$name.rb" > /dev/null; else echo "skipped: ruby is not here"; fi
    if command -v nix-instantiate > /dev/null; then
        NIX_CONFIG='build-users-group =' nix-instantiate --parse flake.nix > /dev/null
    else
        echo "skipped: nix is not here"
    fi
done
[ "$(grep -c sha256 "$work/all/$name.rb")" = 4 ] && [ "$(grep -c sha256sums PKGBUILD)" = 2 ] || fail "a system is missing"
echo "all of them work"
