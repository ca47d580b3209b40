#!/bin/sh
# The main job once, in a small repository made for it in a temporary folder: an agent breaks the checks, `recover`
# says why, rolls back, takes that back, and goes on until the run is complete. Ends with 1 when a step goes wrong.
#
#     sh tests/demo.sh            builds the program first
#     sh tests/demo.sh RECOVER    uses the one given
set -eu

if [ $# -gt 0 ]; then
    recover=$1
else
    root=$(cd "$(dirname "$0")/.." && pwd)
    echo "Building recover; the first time this takes a few minutes." >&2
    cargo build --release --locked --manifest-path "$root/Cargo.toml"
    recover=${CARGO_TARGET_DIR:-$root/target}/release/recover
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export HOME="$folder" RECOVER_COOLDOWN=1s
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME=demo GIT_AUTHOR_EMAIL=demo@example.com
export GIT_COMMITTER_NAME=demo GIT_COMMITTER_EMAIL=demo@example.com
mkdir repo && cd repo

# A stand-in for an agent: its first try at the second iteration is broken.
cat > agent.sh <<'END'
#!/bin/sh
case $RECOVER_ITERATION.$RECOVER_ATTEMPT in
    2.1) echo 'add() { echo $(($1 - $2)); }' > sum.sh ;;
    *) echo 'add() { echo $(($1 + $2)); }' > sum.sh ;;
esac
echo "iteration $RECOVER_ITERATION" >> notes.txt
END
cat > check.sh <<'END'
#!/bin/sh
. ./sum.sh
result=$(add 2 3)
[ "$result" = 5 ] || { echo "FAILED add(2, 3): expected 5, got $result"; exit 1; }
END
chmod +x agent.sh check.sh
git init -q && git add . && git commit -q -m "A small project"

show() {
    printf '\n$ recover'
    printf " %s" "$@"
    printf '\n'
    "$recover" "$@"
}
fail() {
    echo "demo: $1" >&2
    exit 1
}

code=0
show run --no-wait --iterations 3 --prompt "Write add." --feedback test=./check.sh -- ./agent.sh || code=$?
[ "$code" = 6 ] || fail "the run should wait for its cooldown (6), not end with $code"
show status
show rollback --to good
./check.sh || fail "the last good state should pass its checks"
show undo
if ./check.sh > /dev/null; then fail "undo should bring the broken attempt back"; fi
show resume --strategy rollback_and_retry --wait
./check.sh || fail "the completed run should pass its checks"
printf '\nThe failure was explained, rolled back and undone, and the run resumed and completed.\n'
