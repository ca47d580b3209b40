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
    local at word plain last prefix="" cur="${COMP_WORDS[COMP_CWORD]}"
    local -a words=()
    COMPREPLY=()
    for ((at = 0; at <= COMP_CWORD; at++)); do
        word="${COMP_WORDS[at]}"
        last=$((${#words[@]} - 1))
        if [[ "$word" == -- && at -lt COMP_CWORD ]]; then
            # The command that is run is completed as on a line of its own, where that can be had.
            for word in _comp_command_offset _command_offset; do
                declare -F "$word" > /dev/null && "$word" $((at + 1)) && break
            done
            return 0
        fi
        _recover_unquote "$word"
        # --flag=value is three words here.
        if [[ "$word" == "=" && "${words[last]}" == --* ]]; then
            words[last]+="="
            prefix="${words[last]}"
        elif [[ -n "$prefix" && "${words[last]}" == "$prefix" ]]; then
            words[last]+="$plain"
        else
            prefix=""
            words+=("$plain")
        fi
    done
    while IFS= read -r word; do
        word="${word#"$prefix"}"
        case "$cur" in
            # Bash closes what is quoted.
            [\'\"]*) COMPREPLY+=("$word") ;;
            *) COMPREPLY+=("$(printf '%q' "$word")") ;;
        esac
    done < <(VAR=bash COMPLETER -- "${words[@]}" 2> /dev/null)
    case "${COMPREPLY[*]}" in
        *[=/]) compopt -o nospace 2> /dev/null ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _recover -o nosort -o bashdefault -o default recover
else
    complete -F _recover -o bashdefault -o default recover
fi
