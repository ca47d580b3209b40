_recover() {
    local -a plain known folders
    local line word help
    integer dashes=${words[(i)--]}
    if (( dashes < CURRENT )); then
        # The command that is run is completed as on a line of its own.
        shift $dashes words
        (( CURRENT -= dashes ))
        _normal
        return
    fi
    for word in "${(@)words[1,CURRENT]}"; do
        # As the command gets it; nothing is expanded but a leading ~/.
        word=${word/#\~\//$HOME/}
        plain+=("${(Q)word}")
    done
    # Without the quote that is still open.
    plain[-1]=${(Q)PREFIX}
    for line in "${(@f)$(VAR=zsh COMPLETER -- "${plain[@]}" 2> /dev/null)}"; do
        [[ -n $line ]] || continue
        word=${line%%$'\t'*} help=${line#*$'\t'}
        word=${${word//\\/\\\\}//:/\\:}
        case $word in
            (*/) folders+=("${word%/}:$help") ;;
            (*) known+=("$word:$help") ;;
        esac
    done
    # -V: the likeliest first, as they come.
    (( $#folders )) && _describe -V -t folders folder folders -S / -r /
    (( $#known )) && _describe -V -t words recover known
}
compdef _recover recover
