#!/usr/bin/env bash
# Installs what packaging/build.py made and does the main job with it, in roots that hold nothing else: no library, no shell and
# no git; then with a shell, still without git. Needs dpkg, tar and git here, and either root or user namespaces.
#
#     packaging/test.sh [DIST]
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
chroot=$(command -v chroot)
dist=$(realpath "${1:-$(dirname "$0")/../dist}")
if [ "${RECOVER_IN_NAMESPACE-}" != yes ]; then
    # Mounts of its own; and as root of a namespace, where this is not root.
    flags=(--mount)
    [ "$(id -u)" = 0 ] || flags+=(--map-root-user)
    RECOVER_IN_NAMESPACE=yes exec unshare "${flags[@]}" "$0" "$dist"
fi

work=$(mktemp -d)
clean() {
    for place in "$work"/*/proc "$work"/*/dev; do
        ! mountpoint -q "$place" || umount -l "$place"
    done
    rm -rf --one-file-system "$work"
}
trap clean EXIT

fail() {
    printf 'failed: %s\n' "$*" >&2
    exit 1
}

# A root with what every container has: devices, processes, a folder for temporary files, a home.
root_of() {
    mkdir -p "$1"/{dev,proc,tmp,home/me}
    mount --rbind /dev "$1/dev"
    mount --rbind /proc "$1/proc"
}

# Programs of this machine, with their libraries, in /bin of a root.
with_programs() {
    local root=$1 name program library
    shift
    mkdir -p "$root/bin"
    for name; do
        program=$(realpath "$(command -v "$name")")
        cp "$program" "$root/bin/$name"
        for library in $(ldd "$program" | grep -o '/[^ ]*'); do
            mkdir -p "$root$(dirname "$library")"
            cp "$library" "$root$library"
        done
    done
}

# recover in a root, with the exit code that is expected, then its words.
in_root() {
    local root=$1 expected=$2 code=0
    shift 2
    env -i HOME=/home/me PATH=/usr/bin:/bin LC_ALL=C.UTF-8 \
        "$chroot" "$root" /usr/bin/recover -C /home/me/project "$@" > "$work/said" 2>&1 || code=$?
    [ "$code" = "$expected" ] || fail "recover $* ended with $code, not with $expected: $(cat "$work/said")"
}

said() {
    grep -qF -- "$1" "$work/said" || fail "it does not say '$1': $(cat "$work/said")"
}

# A file of the project is there, or is gone.
has() { [ -e "$1/home/me/project/$2" ] || fail "$2 is not there"; }
lacks() { [ ! -e "$1/home/me/project/$2" ] || fail "$2 is still there"; }

# The main job with nothing but the program: what runs as the agent is itself, it writes its own manual.
main_job() {
    local root=$1 git=$2
    mkdir "$root/home/me/project"
    echo works > "$root/home/me/project/app.txt"
    if [ "$git" = git ]; then
        git -C "$root/home/me/project" init -q
        git -C "$root/home/me/project" add -A
        git -C "$root/home/me/project" -c user.name=a -c user.email=a@example.com commit -qm first
    fi
    in_root "$root" 0 --version
    said "recover $version"
    in_root "$root" 0 run --run night --iterations 2 -- /usr/bin/recover man manual
    said "Run night: complete"
    has "$root" manual/recover.1
    in_root "$root" 0 status
    said "2 iterations: 2 passed"
    in_root "$root" 0 rollback --to initial
    lacks "$root" manual/recover.1
    in_root "$root" 0 undo
    has "$root" manual/recover.1
    in_root "$root" 0 checkpoint diff initial
    said manual/recover.1
    in_root "$root" 0 report -o /home/me/night.html
    in_root "$root" 0 doctor
    # A check needs a shell; without one it is named, and nothing is spent.
    if [ ! -e "$root/bin/sh" ]; then
        in_root "$root" 2 run --run checked --feedback test=true -- /usr/bin/recover --version
        said "the check 'test'"
    fi
    if [ "$git" = git ]; then
        in_root "$root" 1 accept --run night --all
        said "there is no program git on PATH"
    fi
}

version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml" | head -1)
(cd "$dist" && sha256sum --quiet -c SHA256SUMS)

echo "the archive, in an empty root"
bare=$work/bare
mkdir -p "$bare/usr"
tar -xzf "$dist/recover-$version-$(uname -m)-unknown-linux-musl.tar.gz" -C "$bare"
mkdir "$bare/usr/bin"
mv "$bare"/recover-*/recover "$bare/usr/bin"
root_of "$bare"
main_job "$bare" git

echo "the Debian package, in an empty root"
installed=$work/installed
mkdir -p "$installed"/var/lib/dpkg/{info,updates}
touch "$installed/var/lib/dpkg/status"
dpkg --root="$installed" --log=/dev/null --install "$dist/recover_$version-1_$(dpkg --print-architecture).deb" > /dev/null
for path in bin/recover share/man/man1/recover-run.1.gz share/man/man5/recover.toml.5.gz share/man/man7/recover-guide.7.gz \
    share/bash-completion/completions/recover share/zsh/vendor-completions/_recover \
    share/fish/vendor_completions.d/recover.fish share/doc/recover/copyright; do
    [ -s "$installed/usr/$path" ] || fail "/usr/$path was not installed"
done
root_of "$installed"
main_job "$installed" "without git"

echo "with a shell, for checks and for agents that are scripts"
with_programs "$installed" sh
rm -rf "$installed/home/me/project"
mkdir "$installed/home/me/project"
printf '#!/bin/sh\nread -r line < app.txt\n[ "$line" = works ] || { echo "FAILED app: it does not work"; exit 1; }\n' \
    > "$installed/home/me/project/check.sh"
printf '#!/bin/sh\nif [ "$RECOVER_ATTEMPT" = 1 ]; then echo broken > app.txt; else echo works > app.txt; fi\n' \
    > "$installed/home/me/project/agent.sh"
chmod +x "$installed/home/me/project"/*.sh
in_root "$installed" 6 run --run night --no-wait --feedback test=./check.sh -- ./agent.sh
said "FAILED app: it does not work"
in_root "$installed" 0 retry-status --reset
in_root "$installed" 0 resume --strategy retry_same
said "Run night: complete"
[ "$(cat "$installed/home/me/project/app.txt")" = works ] || fail "the second attempt did not count"

echo "and removed again"
dpkg --root="$installed" --log=/dev/null --purge recover > /dev/null
[ ! -e "$installed/usr/bin/recover" ] || fail "the program is still there"

echo "the feature for dev containers, in a root with a few programs"
container=$work/container
mkdir -p "$container"
with_programs "$container" sh cat chmod cp cut dirname env grep gzip mkdir mktemp mv rm rmdir sed sha256sum tar uname
root_of "$container"
mkdir "$container/feature" "$container/dist"
tar -xzf "$dist/devcontainer-feature-recover.tgz" -C "$container/feature"
cp "$dist"/recover-*.tar.gz "$container/dist"
cp "$(dirname "$0")/devcontainer/test.sh" "$container/feature"
in_container() { env -i HOME=/home/me PATH=/usr/local/bin:/bin "$@" > "$work/said" 2>&1; }
in_container FROM=/dist "$chroot" "$container" /bin/sh /feature/install.sh || fail "the feature: $(cat "$work/said")"
in_container "$chroot" "$container" /bin/sh /feature/test.sh || fail "the feature's test: $(cat "$work/said")"
echo "all of them work"
