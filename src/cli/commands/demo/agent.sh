#!/bin/sh
# Stands in for a coding agent, without a network and without a key, and fails in four ways: it breaks a test, it crashes
# halfway, it hangs, and it cannot do one of its tasks.
# As agents do, it prints a record of each step, and at the end what it did and what that cost.
record() { printf '{"type":"%s","session_id":"0000000%s-0000-4000-8000-00000000000%s",%s}\n' "$1" "$RECOVER_ITERATION" "$RECOVER_ATTEMPT" "$2"; }
say() {
    record assistant '"message":{"content":[{"type":"text","text":"'"$1"'"}]}'
    sleep 0.2
}
edit() { record assistant '"message":{"content":[{"type":"tool_use","name":"Edit","input":{"file_path":"text.sh"}}]}'; }
add() {
    edit
    printf '\n# %s\n%s\n' "$1" "$2" >> text.sh
}
finish() { record result '"subtype":"success","is_error":false,"num_turns":2,"total_cost_usd":'"$1"',"usage":{"input_tokens":5200,"output_tokens":640},"result":"'"$2"'"'; }

case $RECOVER_ITERATION.$RECOVER_ATTEMPT in
    1.*)
        say 'I add upper.'
        add 'All letters as capitals.' 'upper() { tr a-z A-Z; }'
        finish 0.04 'Added upper, which makes all letters capitals.' ;;
    2.1)
        say 'I add words, and simplify upper.'
        edit
        sed 's/tr a-z A-Z/tr a-z B-Z/' text.sh > text.new && mv text.new text.sh
        add 'How many words there are.' 'words() { wc -w | tr -d " "; }'
        finish 0.05 'Added words, and simplified upper.' ;;
    2.*)
        say 'The last attempt broke upper. I leave it alone.'
        add 'How many words there are.' 'words() { wc -w | tr -d " "; }'
        finish 0.06 'Added words, which counts them; upper stays as it was.' ;;
    3.1)
        say 'I add squeeze.'
        add 'One blank between words.' 'squeeze() {'
        kill -SEGV $$ ;;
    3.*)
        say 'I add squeeze.'
        add 'One blank between words.' 'squeeze() { tr -s " "; }'
        finish 0.05 'Added squeeze, which leaves one blank between words.' ;;
    4.1)
        say 'I add lines, and wait for an answer that never comes.'
        sleep 600 ;;
    4.*)
        say 'I add lines.'
        add 'How many lines there are.' 'lines() { wc -l | tr -d " "; }'
        finish 0.04 'Added lines, which counts them.' ;;
    5.*)
        say 'I add title.'
        add 'Every word with a capital.' 'title() { tr o O; }'
        finish 0.07 'Added title, which capitalises every word.' ;;
    *)
        say 'I add trim.'
        add 'No blanks at both ends.' "trim() { sed 's/^ *//; s/ *\$//'; }"
        finish 0.04 'Added trim, which removes blanks at both ends.' ;;
esac
