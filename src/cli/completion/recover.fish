function __recover_complete
    # As the command gets them; nothing is expanded but a leading ~/.
    set -l words (commandline -opc | string replace -r '^~/' (string escape -- $HOME/) | string unescape)
    if set -l dashes (contains -i -- -- $words)
        # The command that is run is completed as on a line of its own.
        set -l first (math $dashes + 1)
        complete -C (string join ' ' -- (string escape -- $words[$first..-1]) (commandline -ct))
        return
    end
    # Else the terminal would be told that there is no such command.
    command -sq -- COMPLETER; or return
    VAR=fish COMPLETER -- $words (commandline -ct | string replace -r '^~/' (string escape -- $HOME/) | string unescape) 2> /dev/null
end
complete -c recover -e
complete -c recover -x -k -a '(__recover_complete)'
