#!/bin/sh
# What holds in a container that has the feature: the main job works.
set -eu
project=$(mktemp -d)
cd "$project"
echo works > app.txt
recover run --run night -- sh -c 'echo broken > app.txt'
recover status | grep 'complete'
grep -qx broken app.txt
recover rollback --to initial
grep -qx works app.txt
recover undo
recover forget --all --yes
cd /
rm -rf "$project"
