# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_recover_global_optspecs
    string join \n C= run= phase= lane= task= json y/yes no-input dry-run q/quiet v/verbose color= state-dir= lock-timeout= resume rollback h/help V/version
end

function __fish_recover_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_recover_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_recover_using_subcommand
    set -l cmd (__fish_recover_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c recover -n "__fish_recover_needs_command" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_needs_command" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_needs_command" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_needs_command" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_needs_command" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_needs_command" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_needs_command" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_needs_command" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_needs_command" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_needs_command" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_needs_command" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_needs_command" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_needs_command" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_needs_command" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_needs_command" -l resume -d 'Same as `recover resume`, with its flags (for shell hooks and the lane contract)'
complete -c recover -n "__fish_recover_needs_command" -l rollback -d 'Same as `recover rollback`, with its flags (for shell hooks and the lane contract)'
complete -c recover -n "__fish_recover_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_needs_command" -s V -l version -d 'Print version'
complete -c recover -n "__fish_recover_needs_command" -f -a "run" -d 'Supervise a command: initial checkpoint, attempts, feedback loops, checkpoints and decisions, until the run is complete, stopped, parked or escalated'
complete -c recover -n "__fish_recover_needs_command" -f -a "resume" -d 'Take a failed or interrupted run up again: with its recorded command, prompt, feedback loops, timeout, iterations and limits, through the same engine as `run`'
complete -c recover -n "__fish_recover_needs_command" -f -a "rollback" -d 'Put the work tree back to a checkpoint. A verified safety checkpoint comes first: `recover undo` takes it back'
complete -c recover -n "__fish_recover_needs_command" -f -a "undo" -d 'Take back the last rollback, restore or undo of this work tree'
complete -c recover -n "__fish_recover_needs_command" -f -a "redo" -d 'Do again what `undo` took back'
complete -c recover -n "__fish_recover_needs_command" -f -a "checkpoint" -d 'Create, list, inspect, compare, restore, pin, prune and export checkpoints'
complete -c recover -n "__fish_recover_needs_command" -f -a "manual-fix" -d 'Hand over to a person: fix, verify, continue'
complete -c recover -n "__fish_recover_needs_command" -f -a "retry-status" -d 'Whether and when another attempt is allowed'
complete -c recover -n "__fish_recover_needs_command" -f -a "attempt" -d 'Record attempts of a loop that runs its own commands'
complete -c recover -n "__fish_recover_needs_command" -f -a "classify" -d 'Say why something failed, from its evidence; touches no state'
complete -c recover -n "__fish_recover_needs_command" -f -a "step" -d 'Run CMD once in a run: a step that is done is skipped with exit 0 the next time'
complete -c recover -n "__fish_recover_needs_command" -f -a "status" -d 'Where the run stands and how to go on'
complete -c recover -n "__fish_recover_needs_command" -f -a "log" -d 'What has happened'
complete -c recover -n "__fish_recover_needs_command" -f -a "report" -d 'Tell what went wrong, what was tried and what to do now, with the run\'s whole story'
complete -c recover -n "__fish_recover_needs_command" -f -a "import" -d 'Take over files of other systems (battles, attempt histories, lane records, session checkpoints, a loop\'s cooldown), and take archived checkpoints back'
complete -c recover -n "__fish_recover_needs_command" -f -a "sync" -d 'Write every view anew from the ledger, and tell which held something else'
complete -c recover -n "__fish_recover_needs_command" -f -a "init" -d 'Write a commented `.ultraplan/recover.toml` with every key and its default'
complete -c recover -n "__fish_recover_needs_command" -f -a "config" -d 'Show the configuration'
complete -c recover -n "__fish_recover_needs_command" -f -a "doctor" -d 'Find problems of the state directory and of cut-off operations, and mend them'
complete -c recover -n "__fish_recover_needs_command" -f -a "hook" -d 'Let an agent, or git, take checkpoints by itself: before edits, risky commands and calls to the outside, and at its end'
complete -c recover -n "__fish_recover_needs_command" -f -a "completions" -d 'Print a shell\'s completion script'
complete -c recover -n "__fish_recover_needs_command" -f -a "schema" -d 'Print the JSON Schema of what a command answers with --json; without a command that of any answer'
complete -c recover -n "__fish_recover_needs_command" -f -a "man" -d 'Write the man pages'
complete -c recover -n "__fish_recover_using_subcommand run" -l iterations -d 'How many iterations to make [default: 1; with --until as many as it takes]' -r
complete -c recover -n "__fish_recover_using_subcommand run" -l until -d 'Stop when this shell command passes' -r
complete -c recover -n "__fish_recover_using_subcommand run" -l attempts -d 'Attempts allowed for an iteration, the first included; overrides every configured limit' -r
complete -c recover -n "__fish_recover_using_subcommand run" -l retries -d 'Retries allowed for an iteration: attempts minus one' -r
complete -c recover -n "__fish_recover_using_subcommand run" -l timeout -d 'Deadline of one attempt: on it the process group gets SIGTERM, after 5 s SIGKILL' -r
complete -c recover -n "__fish_recover_using_subcommand run" -l feedback -d 'A shell command that must pass after CMD (repeatable; adds to the configured ones)' -r
complete -c recover -n "__fish_recover_using_subcommand run" -l prompt -d 'The prompt: given to CMD on stdin and as a file' -r
complete -c recover -n "__fish_recover_using_subcommand run" -l prompt-file -d 'The prompt from a file (`-` for stdin)' -r -F
complete -c recover -n "__fish_recover_using_subcommand run" -l agent -d 'Whose records the output of CMD is read as' -r -f -a "auto\t''
claude\t''
codex\t''
gemini\t''
opencode\t''
aider\t''
none\t''"
complete -c recover -n "__fish_recover_using_subcommand run" -l on-failure -d 'What follows a failed attempt' -r -f -a "policy\t'What the policy decides'
retry\t'Retry within the budgets, never roll files back'
rollback\t'Roll back to the last good checkpoint, then retry within the budgets'
manual-fix\t'Wait for a person\'s fix'
stop\t'Stop at once'"
complete -c recover -n "__fish_recover_using_subcommand run" -l fallback -d 'A shell command that is run once in place of CMD when no retry is allowed any more' -r
complete -c recover -n "__fish_recover_using_subcommand run" -l approach -d 'What the attempt tries, for the history and for later prompts' -r
complete -c recover -n "__fish_recover_using_subcommand run" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand run" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand run" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand run" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand run" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand run" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand run" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand run" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand run" -l no-wait -d 'Exit 6 rather than sleep when the next attempt has to wait'
complete -c recover -n "__fish_recover_using_subcommand run" -l passthrough -d 'Leave the child\'s stdin and output alone and return its own exit code'
complete -c recover -n "__fish_recover_using_subcommand run" -l pty -d 'Give CMD a terminal of its own; what is typed goes to it, Ctrl-C still stops the run'
complete -c recover -n "__fish_recover_using_subcommand run" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand run" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand run" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand run" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand run" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand run" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand resume" -l strategy -d 'How to take it up: retry_same, retry_with_context, rollback_and_retry, continue_next or manual_then_continue' -r
complete -c recover -n "__fish_recover_using_subcommand resume" -l from-iteration -d 'Go on from this iteration' -r
complete -c recover -n "__fish_recover_using_subcommand resume" -l instructions -d 'More instructions for the prompt (`-` reads them from stdin)' -r
complete -c recover -n "__fish_recover_using_subcommand resume" -l wait -d 'Wait for the cooldown or the reset (at most DUR, then exit 9) rather than exit 6' -r
complete -c recover -n "__fish_recover_using_subcommand resume" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand resume" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand resume" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand resume" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand resume" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand resume" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand resume" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand resume" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand resume" -l no-error-context -d 'Leave the error of the previous attempt out of the prompt'
complete -c recover -n "__fish_recover_using_subcommand resume" -l restart -d 'Start fresh from iteration 1; checkpoints and history stay'
complete -c recover -n "__fish_recover_using_subcommand resume" -l prepare-only -d 'Prepare the work tree and print the prompt; run nothing'
complete -c recover -n "__fish_recover_using_subcommand resume" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand resume" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand resume" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand resume" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand resume" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand resume" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand resume" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand rollback" -l iteration -d 'To before this iteration' -r
complete -c recover -n "__fish_recover_using_subcommand rollback" -l to -d 'To this checkpoint: id, prefix, @SEQ, latest, latest~N, good, initial, iteration:N or stage:NAME' -r
complete -c recover -n "__fish_recover_using_subcommand rollback" -l scope -d 'What to put back' -r -f -a "all\t'Files, working memory, and HEAD where it is the run\'s own to move'
files\t'Files only'
state\t'The working memory below the state directory only'"
complete -c recover -n "__fish_recover_using_subcommand rollback" -l path -d 'Only these paths (globs)' -r
complete -c recover -n "__fish_recover_using_subcommand rollback" -l commits -d 'What to do about commits made since' -r -f -a "refuse\t'Move HEAD only over the run\'s own commits, else refuse'
keep\t'Leave HEAD where it is'
drop\t'Move HEAD back all the same; the commits stay reachable'
revert\t'Make one new commit with the checkpoint\'s content on top'"
complete -c recover -n "__fish_recover_using_subcommand rollback" -l edits -d 'What to do about paths that a person edited since the run last wrote' -r -f -a "refuse\t'Refuse and list them'
keep\t'Leave them as they are'
discard\t'Restore over them; undo brings them back'"
complete -c recover -n "__fish_recover_using_subcommand rollback" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand rollback" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand rollback" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand rollback" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand rollback" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand rollback" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand rollback" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand rollback" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand rollback" -l full -d 'To before the run'
complete -c recover -n "__fish_recover_using_subcommand rollback" -l restore-index -d 'Put the captured index back too'
complete -c recover -n "__fish_recover_using_subcommand rollback" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand rollback" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand rollback" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand rollback" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand rollback" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand rollback" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand rollback" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand undo" -l commits -d 'What to do about commits made since' -r -f -a "refuse\t'Move HEAD only over the run\'s own commits, else refuse'
keep\t'Leave HEAD where it is'
drop\t'Move HEAD back all the same; the commits stay reachable'
revert\t'Make one new commit with the checkpoint\'s content on top'"
complete -c recover -n "__fish_recover_using_subcommand undo" -l edits -d 'What to do about paths that a person edited since' -r -f -a "refuse\t'Refuse and list them'
keep\t'Leave them as they are'
discard\t'Restore over them; undo brings them back'"
complete -c recover -n "__fish_recover_using_subcommand undo" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand undo" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand undo" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand undo" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand undo" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand undo" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand undo" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand undo" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand undo" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand undo" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand undo" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand undo" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand undo" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand undo" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand undo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand redo" -l commits -d 'What to do about commits made since' -r -f -a "refuse\t'Move HEAD only over the run\'s own commits, else refuse'
keep\t'Leave HEAD where it is'
drop\t'Move HEAD back all the same; the commits stay reachable'
revert\t'Make one new commit with the checkpoint\'s content on top'"
complete -c recover -n "__fish_recover_using_subcommand redo" -l edits -d 'What to do about paths that a person edited since' -r -f -a "refuse\t'Refuse and list them'
keep\t'Leave them as they are'
discard\t'Restore over them; undo brings them back'"
complete -c recover -n "__fish_recover_using_subcommand redo" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand redo" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand redo" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand redo" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand redo" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand redo" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand redo" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand redo" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand redo" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand redo" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand redo" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand redo" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand redo" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand redo" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand redo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -f -a "create" -d 'Capture the work tree, the index, HEAD and the working memory as a hidden commit under `refs/recover/`'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -f -a "list" -d 'List checkpoints, oldest first'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -f -a "show" -d 'Show one checkpoint'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -f -a "diff" -d 'Compare two checkpoints, or one with the work tree'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -f -a "restore" -d 'Put the files of a checkpoint back; the run\'s bookkeeping stays as it is. Undoable like a rollback'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -f -a "prune" -d 'Remove checkpoints by policy, with a reason for each. Pinned ones, milestones, undo targets, and the initial and last good one of runs that have not ended are never removed; with --archive old milestones are kept as files instead'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -f -a "pin" -d 'Keep a checkpoint whatever the limits say'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -f -a "unpin" -d 'Let the limits apply to a checkpoint again'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -f -a "verify" -d 'Check that checkpoints can be restored in full; exit 12 names what is missing'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and not __fish_seen_subcommand_from create list show diff restore prune pin unpin verify export" -f -a "export" -d 'Write a checkpoint to a file that works elsewhere: a patch against its base commit, a bundle with its commit, or a document with the state of every file'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -s m -l message -d 'The headline' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l iteration -d 'The iteration it is taken after' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l type -d 'What kind of moment it marks' -r -f -a "phase\t'A milestone'
task\t'A unit of progress'
operation\t'Before or after a single operation'"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l trigger -d 'Why it is taken: before_edit, external, risky, phase, operation, or a word of your own' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l storage -d 'How to keep it beside the hidden commit; else as configured' -r -f -a "snapshot\t'The hidden commit alone'
commit\t'Also a commit on the branch'
patch\t'Also a patch file against HEAD'"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l stage -d 'The lane\'s stage' -r -f -a "before_lane_start\t''
after_lane_start\t''
after_lane_tests\t''
pre_pr\t''
retry_attempt\t''"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l status -d 'The lane\'s status' -r -f -a "ready\t''
in_progress\t''
failed\t''
blocked\t''
complete\t''
rolled_back\t''
retrying\t''"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l base-branch -d 'The integration branch' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l notes -d 'Free-form context' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l test-command -d 'The test command that was run' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l exit-code -d 'Its exit code' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l head-sha -d 'HEAD of the lane' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l commit-sha -d 'Commits of the lane' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l target-branch -d 'Where it is to be merged' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l if-changed -d 'Nothing when nothing changed since the run\'s previous checkpoint'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l if-due -d 'Nothing while the run\'s previous checkpoint is younger than `[checkpoint] interval`, and with --trigger operation while fewer than `every_operations` such calls came after it'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l pin -d 'Keep it whatever the limits say'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from list" -l limit -d 'Only the newest N' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from list" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from list" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from list" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from list" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from list" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from list" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from list" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from list" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from list" -l all-runs -d 'Those of every run'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from list" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from list" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from list" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from list" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from list" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from show" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from show" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from show" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from show" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from show" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from show" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from show" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from show" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from show" -l patch -d 'What it changed since the run\'s previous checkpoint, as a patch'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from show" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from show" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from show" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from show" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from show" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from diff" -l path -d 'Only these paths (globs)' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from diff" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from diff" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from diff" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from diff" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from diff" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from diff" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from diff" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from diff" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from diff" -l patch -d 'As a patch that `git apply` takes'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from diff" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from diff" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from diff" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from diff" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from diff" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from diff" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -l path -d 'Only these paths (globs)' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -l commits -d 'What to do about commits made since [default: keep]' -r -f -a "refuse\t'Move HEAD only over the run\'s own commits, else refuse'
keep\t'Leave HEAD where it is'
drop\t'Move HEAD back all the same; the commits stay reachable'
revert\t'Make one new commit with the checkpoint\'s content on top'"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -l edits -d 'What to do about paths that a person edited since the run last wrote' -r -f -a "refuse\t'Refuse and list them'
keep\t'Leave them as they are'
discard\t'Restore over them; undo brings them back'"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -l restore-index -d 'Put the captured index back too'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from restore" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l keep-last -d 'Keep the newest N of each run' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l keep-within -d 'Keep what is not older than this' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l keep-hourly -d 'Keep the last one of each of the newest N hours' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l keep-daily -d 'Keep the last one of each of the newest N days' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l keep-weekly -d 'Keep the last one of each of the newest N weeks' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l max-age -d 'Remove what is older than this' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l max-total-size -d 'Remove the oldest ones until the others have captured no more than this (100MiB, 2GB)' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l archive -d 'Write milestones and pinned ones that are older than --max-age (else `[retention] scheduled_max_age`) into this folder as git bundles, and remove them once each was read back' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l drop-failed -d 'Remove those whose feedback loops failed'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l drop-passed -d 'Remove those whose feedback loops passed'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from prune" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from pin" -l note -d 'Why' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from pin" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from pin" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from pin" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from pin" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from pin" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from pin" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from pin" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from pin" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from pin" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from pin" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from pin" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from pin" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from pin" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from pin" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from pin" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from unpin" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from unpin" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from unpin" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from unpin" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from unpin" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from unpin" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from unpin" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from unpin" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from unpin" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from unpin" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from unpin" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from unpin" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from unpin" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from unpin" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from unpin" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from verify" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from verify" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from verify" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from verify" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from verify" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from verify" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from verify" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from verify" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from verify" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from verify" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from verify" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from verify" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from verify" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from verify" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -l patch -d 'As a patch that `git apply` takes on a clean checkout of the base commit; - for standard output' -r -F
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -l bundle -d 'As a git bundle from which `git fetch` takes the checkpoint in any repository; - for standard output' -r -F
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -l format -d 'As a document: seed-json is a session\'s checkpoint with the state of every file' -r -f -a "seed-json\t''"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -s o -l output -d 'Where the document goes; - for standard output [default: the session\'s folder below the state directory]' -r -F
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -l force -d 'Replace the file that is there'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -l edit -d 'Open $VISUAL or $EDITOR at the first error'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -f -a "start" -d 'Open a session (a second start returns the open one)'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -f -a "status" -d 'Show the session and what has changed since it began'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -f -a "watch" -d 'Tell each change as it comes and verify once it is quiet, until a signal ends it; the session stays open'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -f -a "verify" -d 'Run the feedback loops on the work tree as it is; exit 0 or 100'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -f -a "continue" -d 'Make the verified fix the iteration\'s result and go on with the next iterations'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and not __fish_seen_subcommand_from start status watch verify continue abort" -f -a "abort" -d 'Give the session up; files stay as they are'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from start" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from start" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from start" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from start" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from start" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from start" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from start" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from start" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from start" -l edit -d 'Open $VISUAL or $EDITOR at the first error'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from start" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from start" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from start" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from start" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from start" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from start" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from start" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from status" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from status" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from status" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from status" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from status" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from status" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from status" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from status" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from status" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from status" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from status" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from status" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from status" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from status" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from watch" -l wait -d 'End with 0 once the fix is verified (after DUR with 9)' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from watch" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from watch" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from watch" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from watch" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from watch" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from watch" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from watch" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from watch" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from watch" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from watch" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from watch" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from watch" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from watch" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from watch" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from verify" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from verify" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from verify" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from verify" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from verify" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from verify" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from verify" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from verify" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from verify" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from verify" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from verify" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from verify" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from verify" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from verify" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from continue" -l wait -d 'Wait for the cooldown or the reset (at most DUR, then exit 9) rather than exit 6' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from continue" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from continue" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from continue" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from continue" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from continue" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from continue" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from continue" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from continue" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from continue" -l prepare-only -d 'Prepare and print the next prompt; run nothing'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from continue" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from continue" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from continue" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from continue" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from continue" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from continue" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from continue" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from abort" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from abort" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from abort" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from abort" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from abort" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from abort" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from abort" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from abort" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from abort" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from abort" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from abort" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from abort" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from abort" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from abort" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand manual-fix; and __fish_seen_subcommand_from abort" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand retry-status" -l wait -d 'Sleep until a retry is allowed (at most DUR, then exit 9)' -r
complete -c recover -n "__fish_recover_using_subcommand retry-status" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand retry-status" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand retry-status" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand retry-status" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand retry-status" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand retry-status" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand retry-status" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand retry-status" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand retry-status" -l check -d 'Exit 0 (now), 6 (wait), 7 (exhausted) or 8 (a person is needed)'
complete -c recover -n "__fish_recover_using_subcommand retry-status" -l reset -d 'Forget the run\'s failures and its cooldown'
complete -c recover -n "__fish_recover_using_subcommand retry-status" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand retry-status" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand retry-status" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand retry-status" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand retry-status" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand retry-status" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand retry-status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -f -a "start" -d 'An attempt begins. Allowed during a cooldown: it only records'
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -f -a "pass" -d 'The attempt passed: takes a good checkpoint and clears the error count'
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -f -a "fail" -d 'The attempt failed: it is classified, counted and decided on; the working memory goes back to the last checkpoint'
complete -c recover -n "__fish_recover_using_subcommand attempt; and not __fish_seen_subcommand_from start pass fail list" -f -a "list" -d 'The history, with what is stuck'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -l approach -d 'What it tries' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -l iteration -d 'Its iteration' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -l subtask -d 'What it is booked on in the history' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from start" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from pass" -s m -l message -d 'The headline of its checkpoint' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from pass" -l approach -d 'What it tried' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from pass" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from pass" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from pass" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from pass" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from pass" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from pass" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from pass" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from pass" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from pass" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from pass" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from pass" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from pass" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from pass" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from pass" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from pass" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l message -d 'What went wrong, in the caller\'s words' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l exit-code -d 'Exit status of the command' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l signal -d 'Name or number of the signal that ended it (SIGKILL, 9)' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l duration -d 'How long it ran' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l loop -d 'Which stage failed' -r -f -a "agent\t'The agent itself'
build\t'Building or preparing'
test\t'Tests'
lint\t'Lints and formatting'
typecheck\t'A type checker'"
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l log -d 'Its output (`-` for stdin)' -r -F
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l stderr -d 'Its standard error' -r -F
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l agent -d 'Whose records the output is read as' -r -f -a "auto\t''
claude\t''
codex\t''
gemini\t''
opencode\t''
aider\t''
none\t''"
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l approach -d 'What it tried' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l plan -d 'The loop\'s plan number, for its events' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l timed-out -d 'A deadline ended it'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l no-rollback -d 'Leave the working memory as it is'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l check -d 'Exit 5 (retry now), 6 (wait), 7 (exhausted) or 8 (a person) as decided, rather than 0'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from fail" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from list" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from list" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from list" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from list" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from list" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from list" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from list" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from list" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from list" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from list" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from list" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from list" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from list" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand attempt; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand classify" -l message -d 'What went wrong, in the caller\'s words' -r
complete -c recover -n "__fish_recover_using_subcommand classify" -l exit-code -d 'Exit status of the command' -r
complete -c recover -n "__fish_recover_using_subcommand classify" -l signal -d 'Name or number of the signal that ended it (SIGKILL, 9)' -r
complete -c recover -n "__fish_recover_using_subcommand classify" -l duration -d 'How long it ran' -r
complete -c recover -n "__fish_recover_using_subcommand classify" -l loop -d 'Which stage failed' -r -f -a "agent\t'The agent itself'
build\t'Building or preparing'
test\t'Tests'
lint\t'Lints and formatting'
typecheck\t'A type checker'"
complete -c recover -n "__fish_recover_using_subcommand classify" -l log -d 'Its output (`-` for stdin)' -r -F
complete -c recover -n "__fish_recover_using_subcommand classify" -l stderr -d 'Its standard error' -r -F
complete -c recover -n "__fish_recover_using_subcommand classify" -l agent -d 'Whose records the output is read as' -r -f -a "auto\t''
claude\t''
codex\t''
gemini\t''
opencode\t''
aider\t''
none\t''"
complete -c recover -n "__fish_recover_using_subcommand classify" -l stdout -d 'Its standard output' -r -F
complete -c recover -n "__fish_recover_using_subcommand classify" -l command -d 'The command line as it was run' -r
complete -c recover -n "__fish_recover_using_subcommand classify" -l deadline -d 'The deadline that was set' -r
complete -c recover -n "__fish_recover_using_subcommand classify" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand classify" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand classify" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand classify" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand classify" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand classify" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand classify" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand classify" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand classify" -l timed-out -d 'A deadline ended it'
complete -c recover -n "__fish_recover_using_subcommand classify" -l explain -d 'Also the rules that matched and lost'
complete -c recover -n "__fish_recover_using_subcommand classify" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand classify" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand classify" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand classify" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand classify" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand classify" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand classify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand step" -l stage -d 'Take the checkpoint of this stage of the lane once CMD has ended: complete if it succeeded, else failed' -r -f -a "before_lane_start\t''
after_lane_start\t''
after_lane_tests\t''
pre_pr\t''
retry_attempt\t''"
complete -c recover -n "__fish_recover_using_subcommand step" -l target-branch -d 'Where the lane is to be merged; recorded with its stage [default: the lane\'s base branch]' -r
complete -c recover -n "__fish_recover_using_subcommand step" -l intent -d 'What CMD is about to do; recorded before it runs' -r
complete -c recover -n "__fish_recover_using_subcommand step" -l path -d 'The files that --atomic covers (globs) [default: the whole work tree]' -r
complete -c recover -n "__fish_recover_using_subcommand step" -l compensate -d 'The shell command that takes the step\'s effect outside the work tree back: a rollback to before the step runs it' -r
complete -c recover -n "__fish_recover_using_subcommand step" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand step" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand step" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand step" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand step" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand step" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand step" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand step" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand step" -l atomic -d 'All or nothing: unless CMD succeeds, the covered files are put back as they were, whoever changed them meanwhile; what is ignored, over the size limit or in a repository of its own is not covered'
complete -c recover -n "__fish_recover_using_subcommand step" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand step" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand step" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand step" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand step" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand step" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand step" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand status" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand status" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand status" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand status" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand status" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand status" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand status" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand status" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand status" -l watch -d 'Show it again whenever it changes, until a signal comes'
complete -c recover -n "__fish_recover_using_subcommand status" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand status" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand status" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand status" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand status" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand status" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand log" -l limit -d 'Only the newest N events' -r
complete -c recover -n "__fish_recover_using_subcommand log" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand log" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand log" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand log" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand log" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand log" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand log" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand log" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand log" -l follow -d 'Then tell what happens as it happens, until a signal comes'
complete -c recover -n "__fish_recover_using_subcommand log" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand log" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand log" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand log" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand log" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand log" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand log" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand report" -l format -d 'The form; default: what the name after -o ends with, else md' -r -f -a "md\t'Markdown'
html\t'One HTML file with everything in it'
json\t'The JSON document'"
complete -c recover -n "__fish_recover_using_subcommand report" -l subtask -d 'Only the attempts of this subtask' -r
complete -c recover -n "__fish_recover_using_subcommand report" -s o -l output -d 'Write it to this file, whole or not at all; - for standard output' -r -F
complete -c recover -n "__fish_recover_using_subcommand report" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand report" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand report" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand report" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand report" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand report" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand report" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand report" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand report" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand report" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand report" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand report" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand report" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand report" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand import" -l kind -d 'What they are, rather than what they look like' -r -f -a "battle\t'A battle\'s JSON'
attempt_history\t'attempt_history.json'
lanes\t'checkpoints.json of the lane contract'
session\t'A session\'s checkpoint, or active_checkpoint.json'
recovery\t'recovery.json'"
complete -c recover -n "__fish_recover_using_subcommand import" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand import" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand import" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand import" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand import" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand import" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand import" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand import" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand import" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand import" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand import" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand import" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand import" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand import" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand sync" -l to -d 'Into this folder, as the systems they are for have them, session checkpoints included' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand sync" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand sync" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand sync" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand sync" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand sync" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand sync" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand sync" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand sync" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand sync" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand sync" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand sync" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand sync" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand sync" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand sync" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand sync" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand init" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand init" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand init" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand init" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand init" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand init" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand init" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand init" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand init" -l force -d 'Replace the file that is there'
complete -c recover -n "__fish_recover_using_subcommand init" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand init" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand init" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand init" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand init" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand init" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand config" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand config" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand config" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand config" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand config" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand config" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand config" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand config" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand config" -l origins -d 'Where each value comes from'
complete -c recover -n "__fish_recover_using_subcommand config" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand config" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand config" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand config" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand config" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand config" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand config" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand doctor" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand doctor" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand doctor" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand doctor" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand doctor" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand doctor" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand doctor" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand doctor" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand doctor" -l repair -d 'Mend what can be mended'
complete -c recover -n "__fish_recover_using_subcommand doctor" -l rebuild -d 'Make the ledger again, where it is lost or damaged or the project was moved or copied, from the checkpoints and what can be read of it; the old one is kept aside'
complete -c recover -n "__fish_recover_using_subcommand doctor" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand doctor" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand doctor" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand doctor" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand doctor" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand doctor" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -f -a "print" -d 'Print the settings, to be copied'
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -f -a "install" -d 'Put the hook into the agent\'s settings or into git\'s hooks. All else in the files stays; twice is once'
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -f -a "uninstall" -d 'Take the hook out again, and nothing else'
complete -c recover -n "__fish_recover_using_subcommand hook; and not __fish_seen_subcommand_from print install uninstall run" -f -a "run" -d 'What the settings call: reads one event as JSON on stdin, does what is due, and ends with 0 whatever happens'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from print" -l program -d 'How recover is to be called; default: by its name, or by its path where it is not on PATH' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from print" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from print" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from print" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from print" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from print" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from print" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from print" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from print" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from print" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from print" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from print" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from print" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from print" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from print" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from print" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -l program -d 'How recover is to be called; default: by its name, or by its path where it is not on PATH' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -l local -d 'In your own settings of this project, which are not committed (Claude Code)'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -l user -d 'In your own settings, for all projects'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from install" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from uninstall" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from uninstall" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from uninstall" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from uninstall" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from uninstall" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from uninstall" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from uninstall" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from uninstall" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from uninstall" -l local -d 'In your own settings of this project, which are not committed (Claude Code)'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from uninstall" -l user -d 'In your own settings, for all projects'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from uninstall" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from uninstall" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from uninstall" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from uninstall" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from uninstall" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from uninstall" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from uninstall" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from run" -l deadline -d 'Give up after this long; the first checkpoint of a session may take six times as long' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from run" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from run" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from run" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from run" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from run" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from run" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from run" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from run" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from run" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from run" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from run" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from run" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from run" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from run" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand hook; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand completions" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand completions" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand completions" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand completions" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand completions" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand completions" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand completions" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand completions" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand completions" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand completions" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand completions" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand completions" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand completions" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand completions" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand schema" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand schema" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand schema" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand schema" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand schema" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand schema" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand schema" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand schema" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand schema" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand schema" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand schema" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand schema" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand schema" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand schema" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand schema" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c recover -n "__fish_recover_using_subcommand man" -s C -d 'Act as if started in DIR' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand man" -l run -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here' -r
complete -c recover -n "__fish_recover_using_subcommand man" -l phase -d 'The run\'s phase' -r
complete -c recover -n "__fish_recover_using_subcommand man" -l lane -d 'The run\'s lane' -r
complete -c recover -n "__fish_recover_using_subcommand man" -l task -d 'The task that the run works on' -r
complete -c recover -n "__fish_recover_using_subcommand man" -l color -d 'When to use colour (also `NO_COLOR`)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c recover -n "__fish_recover_using_subcommand man" -l state-dir -d 'The state directory; default `.ultraplan/state` of the project root' -r -f -a "(__fish_complete_directories)"
complete -c recover -n "__fish_recover_using_subcommand man" -l lock-timeout -d 'How long to wait for another process\'s lock before giving up with exit 11' -r
complete -c recover -n "__fish_recover_using_subcommand man" -l json -d 'Print one JSON document on stdout and nothing else there'
complete -c recover -n "__fish_recover_using_subcommand man" -s y -l yes -d 'Answer yes to every question'
complete -c recover -n "__fish_recover_using_subcommand man" -l no-input -d 'Never ask; what would need an answer is refused (13)'
complete -c recover -n "__fish_recover_using_subcommand man" -l dry-run -d 'Show what would be done and change nothing'
complete -c recover -n "__fish_recover_using_subcommand man" -s q -l quiet -d 'Only errors on stderr'
complete -c recover -n "__fish_recover_using_subcommand man" -s v -l verbose -d 'More detail on stderr; repeat for more (also RECOVER_LOG)'
complete -c recover -n "__fish_recover_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'

# Whether the line is about this command, as a word or, as `recover --resume` is, as a flag.
function __fish_recover_is
    # What comes behind it is another command.
    contains -- -- (commandline -opc); and return 1
    __fish_recover_using_subcommand $argv[1]; or contains -- --$argv[1] (commandline -opc)
end
# What only recover knows at this moment: runs, checkpoints, strategies.
function __fish_recover_known
    # As the command gets them; nothing is expanded but a leading ~/.
    set -l words (commandline -opc | string replace -r '^~/' (string escape -- $HOME/) | string unescape)
    # Else the terminal would be told that there is no such command.
    command -sq -- $words[1]; or return
    set -l where
    set -l at 2
    while test $at -le (count $words)
        switch $words[$at]
            case --
                break
            case -C --state-dir --run
                set -l value (math $at + 1)
                test $value -le (count $words); and set -a where $words[$at] $words[$value]
                set at $value
            case '--state-dir=*' '--run=*'
                set -a where (string split -m 1 = -- $words[$at])
        end
        set at (math $at + 1)
    end
    command $words[1] __complete $argv[1] $where 2>/dev/null
end
complete -c recover -l run -x -k -a '(__fish_recover_known runs)' -d 'The run to work on (or its name, when one is created); else $RECOVER_RUN_ID, else the only open run here'
complete -c recover -n '__fish_recover_is rollback' -l to -x -k -a '(__fish_recover_known checkpoints)' -d 'To this checkpoint: id, prefix, @SEQ, latest, latest~N, good, initial, iteration:N or stage:NAME'
complete -c recover -n '__fish_recover_is resume' -l strategy -x -k -a '(__fish_recover_known strategies)' -d 'How to take it up: retry_same, retry_with_context, rollback_and_retry, continue_next or manual_then_continue'
complete -c recover -n '__fish_recover_is resume' -f -k -a '(__fish_recover_known runs)'
complete -c recover -n '__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from show diff restore pin unpin verify export' -f -k -a '(__fish_recover_known checkpoints)'
