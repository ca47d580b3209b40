# A word of the line as the command gets it, into the variable `plain`; nothing in it is expanded but a leading ~/.
_recover_unquote() {
    plain="$1"
    case "$plain" in
        \'*) plain="${plain#\'}" plain="${plain%\'}" ;;
        \"*) plain="${plain#\"}" plain="${plain%\"}" ;;
        *)
            plain="${plain/#\~\//$HOME/}"
            IFS= read -d '' plain <<< "$plain"
            plain="${plain%$'\n'}"
            ;;
    esac
}

_recover() {
    local at word plain last help width=0 prefix="" cur="${COMP_WORDS[COMP_CWORD]}"
    local -a words=() helps=()
    COMPREPLY=()
    for ((at = 0; at <= COMP_CWORD; at++)); do
        word="${COMP_WORDS[at]}"
        last=$((${#words[@]} - 1))
        if [[ "$word" == -- && at -lt COMP_CWORD ]]; then
            # The command that is run is completed as on a line of its own, where that can be had.
            for word in _comp_command_offset _command_offset; do
                declare -F "$word" > /dev/null && { "$word" $((at + 1)); return 0; }
            done
            # Else a command by its name; its arguments are files, as by default.
            if ((at + 1 == COMP_CWORD)); then
                while IFS= read -r word; do
                    COMPREPLY+=("$word")
                done < <(compgen -A command -- "$cur")
            fi
            return 0
        fi
        _recover_unquote "$word"
        # --flag=value is three words here, and so is --feedback's NAME=CMD.
        if [[ "$word" == "=" && ("${words[last]}" == --* || "${words[last - 1]}" == --feedback) ]]; then
            words[last]+="="
            prefix="${words[last]}"
        elif [[ -n "$prefix" && "${words[last]}" == "$prefix" ]]; then
            words[last]+="$plain"
        else
            prefix=""
            words+=("$plain")
        fi
    done
    while IFS=$'\t' read -r word help; do
        word="${word#"$prefix"}"
        helps+=("$help")
        case "$cur" in
            # Bash closes what is quoted.
            [\'\"]*) COMPREPLY+=("$word") ;;
            *) COMPREPLY+=("$(printf '%q' "$word")") ;;
        esac
    done < <(VAR=bash COMPLETER -- "${words[@]}" 2> /dev/null)
    case "${COMPREPLY[*]}" in
        *[=/]) compopt -o nospace 2> /dev/null ;;
    esac
    # A list (?, ! and @) shows what each is; nothing of that gets into the line, for the words differ before it.
    case "$COMP_TYPE" in
        63 | 33 | 64) [[ "${#COMPREPLY[@]}" -gt 1 ]] || return 0 ;;
        *) return 0 ;;
    esac
    for word in "${COMPREPLY[@]}"; do
        ((${#word} > width)) && width=${#word}
    done
    for at in "${!COMPREPLY[@]}"; do
        [[ -n "${helps[at]}" ]] || continue
        printf -v word '%-*s  (%s)' "$width" "${COMPREPLY[at]}" "${helps[at]}"
        COMPREPLY[at]="${word:0:${COLUMNS:-80}-1}"
    done
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _recover -o nosort -o bashdefault -o default recover
else
    complete -F _recover -o bashdefault -o default recover
fi
