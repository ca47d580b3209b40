#!/bin/sh
# The main job once, in the playground that `recover demo` makes: an agent fails in four ways in a night, and in the morning
# its work is looked at, rolled back, brought back and accepted. Ends with 1 when a step goes wrong.
#
#     sh tests/demo.sh            builds the program first
#     sh tests/demo.sh RECOVER    uses the one given
set -eu

step() { printf '\n== %s\n' "$1"; }
fail() {
    echo "demo: $1" >&2
    exit 1
}

if [ $# -gt 0 ]; then
    recover=$1
    case $recover in
        /*) ;;
        */*) recover=$PWD/$recover ;;
    esac
else
    root=$(cd "$(dirname "$0")/.." && pwd)
    step "Building recover; the first time this takes a few minutes"
    # Object stores, of which it needs none, are a quarter of the build.
    cargo build --profile demo --no-default-features --locked --manifest-path "$root/Cargo.toml"
    recover=${CARGO_TARGET_DIR:-$root/target}/demo/recover
fi

folder=$(mktemp -d)
step "A night in $folder, which stays: about ten seconds"
"$recover" demo "$folder" > /dev/null
cd "$folder"
show() {
    printf '$ recover %s\n' "$*"
    "$recover" "$@"
}

step "What became of it"
show status
./test.sh > /dev/null || fail "the last good state should pass its checks"
step "Back to where iteration 3 began, and that taken back"
show rollback --iteration 3
if grep -q '^squeeze()' text.sh; then fail "the rollback should take squeeze back"; fi
show undo
grep -q '^squeeze()' text.sh || fail "undo should bring squeeze back"
step "What passed becomes commits"
show accept --yes
[ "$(git log --oneline | wc -l)" -gt 1 ] || fail "accept should commit"
./test.sh || fail "what was accepted should pass its checks"
printf '\nThe failures were explained, rolled back and undone, and what passed was accepted.\nIt is all still there: cd %s\n' "$folder"
