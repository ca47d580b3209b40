#!/bin/bash
# The steps of action.yml. What a try leaves is carried to the next one of the same workflow run in $RUNNER_TEMP/recover:
# the ledger and the checkpoints, which are ordinary references of git.
set -euo pipefail

run=${INPUT_RUN:-ci}
saved=$RUNNER_TEMP/recover
state=.ultraplan/state
# A job's own state, brought by its own cache.
export RECOVER_TRUST=1

# The lines of a variable, each after a flag where one is given.
lines() {
    local line
    while IFS= read -r line; do
        [ -z "$line" ] || printf '%s\0' ${2:+"$2"} "$line"
    done <<< "$1"
}

# The program of the release that the action was named by; built from its sources where there is none.
install() {
    if ! command -v recover > /dev/null; then
        local place=$RUNNER_TEMP/recover-program
        local release=$GITHUB_SERVER_URL/$ACTION_REPOSITORY/releases/download/$ACTION_REF
        mkdir -p "$place"
        if [ -n "$ACTION_REPOSITORY" ] && curl -fsSL -o "$place/install.sh" "$release/install.sh"; then
            sh "$place/install.sh" --prefix "$place" --from "$release"
        else
            cargo install --locked --root "$place" --path "$GITHUB_ACTION_PATH/../.."
        fi
        echo "$place/bin" >> "$GITHUB_PATH"
        PATH=$place/bin:$PATH
    fi
    recover --version
}

restore() {
    if [ ! -e "$saved/state.tar" ]; then
        echo "nothing is left of an earlier try"
        return
    fi
    git fetch --quiet "$saved/checkpoints.bundle" '+refs/recover/*:refs/recover/*'
    mkdir -p "$state"
    tar -xf "$saved/state.tar" -C "$state"
    # The checkout has what was committed, not what the last try had come to.
    recover checkpoint restore latest --run "$run" --edits discard
}

run() {
    local words=() code=0 word
    if recover status --run "$run" --quiet > "$RUNNER_TEMP/recover-status" 2>&1; then
        words=(resume --run "$run" "--wait=$INPUT_WAIT")
    else
        words=(run --run "$run" "--wait=$INPUT_WAIT")
        while IFS= read -r -d '' word; do words+=("$word"); done < <(
            lines "$INPUT_FEEDBACK" --feedback
            lines "$INPUT_ARGS"
        )
        [ -z "$INPUT_PROMPT_FILE" ] || words+=(--prompt-file "$INPUT_PROMPT_FILE")
        if [ -n "$INPUT_AGENT" ]; then
            words+=(--agent "$INPUT_AGENT")
        elif [ -n "$INPUT_COMMAND" ]; then
            words+=(-- bash -c "$INPUT_COMMAND")
        else
            echo "::error::command or agent is needed"
            exit 2
        fi
    fi
    recover "${words[@]}" || code=$?
    echo "exit-code=$code" >> "$GITHUB_OUTPUT"
    exit "$code"
}

save() {
    [ -d "$state" ] || return 0
    rm -rf "$saved" && mkdir -p "$saved"
    # Where nothing was captured there is nothing to carry.
    if [ -n "$(git for-each-ref --count=1 refs/recover)" ]; then
        git bundle create --quiet "$saved/checkpoints.bundle" --glob='refs/recover/*'
        tar -cf "$saved/state.tar" -C "$state" --exclude=./recover/precious .
    fi
    recover report --run "$run" -o "$RUNNER_TEMP/recover-$run.html"
    echo "report=$RUNNER_TEMP/recover-$run.html" >> "$GITHUB_OUTPUT"
}

# What passed, as commits on a branch of its own at the server.
push() {
    [ -n "${INPUT_BRANCH-}" ] || return 0
    export GIT_AUTHOR_NAME=${GIT_AUTHOR_NAME-$GITHUB_ACTOR} GIT_COMMITTER_NAME=${GIT_COMMITTER_NAME-$GITHUB_ACTOR}
    export GIT_AUTHOR_EMAIL=${GIT_AUTHOR_EMAIL-$GITHUB_ACTOR@users.noreply.github.com}
    export GIT_COMMITTER_EMAIL=${GIT_COMMITTER_EMAIL-$GIT_AUTHOR_EMAIL}
    recover accept --run "$run" --branch "$INPUT_BRANCH" --all --yes
    git push origin "$INPUT_BRANCH"
}

"$1"
