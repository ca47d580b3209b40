//! Completions of what only `recover` knows at that moment: runs, checkpoints, strategies.
//!
//! The scripts ask a hidden command, `recover __complete KIND`, which answers a line each: the word, a tab, what it is.
//! What the scripts do beside that is clap's.

use std::collections::BTreeSet;
use std::fmt::Write;

use clap_complete::Shell;

/// Flags whose values are known, wherever they are.
const FLAGS: [(&str, &str); 3] = [("run", "runs"), ("to", "checkpoints"), ("strategy", "strategies")];
/// The commands below `checkpoint` whose words are checkpoints.
const SELECTING: [&str; 7] = ["show", "diff", "restore", "pin", "unpin", "verify", "export"];
/// Flags that say where to look.
const WHERE: [&str; 3] = ["-C", "--state-dir", "--run"];

/// The script that clap made, with what is known added.
pub fn with_known(shell: Shell, script: &str, tree: &clap::Command) -> String {
    match shell {
        Shell::Bash => bash(script, tree),
        Shell::Zsh => zsh(script),
        Shell::Fish => fish(script, tree),
        _ => script.to_owned(),
    }
}

/// Options that a value follows wherever they are.
fn valued(tree: &clap::Command) -> Vec<String> {
    let (mut with, mut without) = (BTreeSet::new(), BTreeSet::new());
    options(tree, &mut with, &mut without);
    with.difference(&without).cloned().collect()
}

fn options(command: &clap::Command, with: &mut BTreeSet<String>, without: &mut BTreeSet<String>) {
    for arg in command.get_arguments().filter(|arg| !arg.is_positional()) {
        let found = if arg.get_action().takes_values() { &mut *with } else { &mut *without };
        found.extend(arg.get_long().map(|long| format!("--{long}")));
        found.extend(arg.get_short().map(|short| format!("-{short}")));
    }
    command.get_subcommands().for_each(|sub| options(sub, with, without));
}

/// A function around clap's own, which is asked about everything else.
fn bash(script: &str, tree: &clap::Command) -> String {
    let flags = valued(tree);
    let cases: String = FLAGS.iter().fold(String::new(), |mut text, (flag, kind)| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "        --{flag}) kind={kind} ;;");
        text
    });
    let known = format!(
        r#"
# A word of the line as the command gets it, into the variable `plain`; nothing in it is expanded but a leading ~/.
_recover_plain() {{
    plain="$1"
    case "$plain" in
        \'*) plain="${{plain#\'}}" plain="${{plain%\'}}" ;;
        \"*) plain="${{plain#\"}}" plain="${{plain%\"}}" ;;
        *)
            plain="${{plain/#\~\//$HOME/}}"
            IFS= read -d '' plain <<< "$plain"
            plain="${{plain%$'\n'}}"
            ;;
    esac
}}

# What only recover knows at this moment: runs, checkpoints, strategies.
_recover_known() {{
    local cur="$2" prev="$3" kind="" place="" at word program plain
    local -a where=()
    if [[ "$cur" == "=" ]]; then
        cur=""
    elif [[ "$prev" == "=" ]]; then
        prev="${{COMP_WORDS[COMP_CWORD - 2]}}"
    fi
    for ((at = 1; at < COMP_CWORD; at++)); do
        word="${{COMP_WORDS[at]}}"
        case "$word" in
            --)
                place=command
                break
                ;;
            {valued})
                # --flag=value is three words here.
                at=$((at + 1))
                [[ "${{COMP_WORDS[at]}}" == "=" ]] && at=$((at + 1))
                case "$word" in
                    {where_flags})
                        if ((at < COMP_CWORD)); then
                            _recover_plain "${{COMP_WORDS[at]}}"
                            where+=("$word" "$plain")
                        fi
                        ;;
                esac
                ;;
            -*) ;;
            *) place="$place $word" ;;
        esac
    done
    case "$prev" in
{cases}        {valued}) ;;
        *)
            case "$cur:$place" in
                -*) ;;
                *:" resume") kind=runs ;;
{places}            esac
            ;;
    esac
    if [[ "$place" != command && -n "$kind" ]]; then
        # Not by compgen -W, which would expand what the words contain.
        COMPREPLY=()
        _recover_plain "${{COMP_WORDS[0]}}"
        program="$plain"
        _recover_plain "$cur"
        while IFS=$'\t' read -r word _; do
            if [[ "$word" != "$plain"* ]]; then
                continue
            elif [[ "${{COMP_WORDS[COMP_CWORD]}}" == [\'\"]* ]]; then
                # Bash closes what is quoted.
                COMPREPLY+=("$word")
            else
                COMPREPLY+=("$(printf '%q' "$word")")
            fi
        done < <("$program" __complete "$kind" "${{where[@]}}" 2>/dev/null)
        return 0
    fi
    _recover "$@"
}}
"#,
        where_flags = WHERE.join(" | "),
        valued = flags.join(" | "),
        places = SELECTING.iter().fold(String::new(), |mut text, name| {
            let _ = writeln!(text, "                *:\" checkpoint {name}\"*) kind=checkpoints ;;");
            text
        }),
    );
    let end = "\nif [[ \"${BASH_VERSINFO[0]}\"";
    let (function, register) = script.rsplit_once(end).unwrap_or((script, ""));
    let register = register.replace("complete -F _recover ", "complete -F _recover_known ");
    format!("{function}{known}{end}{register}")
}

/// The actions of arguments replaced, and the line kept before `_arguments` cuts it down to a subcommand's.
fn zsh(script: &str) -> String {
    let action = |line: &str| -> Option<&'static str> {
        let flag = FLAGS.iter().find(|(flag, _)| line.starts_with(&format!("'--{flag}=[")));
        let selects = ["selector -- ", "selectors -- ", "from -- ", "to -- "];
        let positional = line.trim_start_matches(['\'', ':', '*']);
        match flag {
            Some((_, kind)) => Some(kind),
            None if line.starts_with("'::run_id -- ") => Some("runs"),
            None if line.starts_with("'*::command -- ") => Some("command"),
            None if line.starts_with('\'') && selects.iter().any(|name| positional.starts_with(name)) => {
                Some("checkpoints")
            }
            None => None,
        }
    };
    let begin = "_recover() {";
    let mut out = String::new();
    for line in script.lines() {
        match (action(line), line.strip_suffix(":_default' \\")) {
            (Some(kind), Some(before)) => out.push_str(&format!("{before}:_recover_{kind}' \\\n")),
            _ if line == begin => out.push_str(&format!(
                "{line}\n    local -a recover_line; recover_line=(\"${{(@)words[1,CURRENT-1]}}\")\n"
            )),
            _ => out.push_str(&format!("{line}\n")),
        }
    }
    let known = r#"
# A word of the line as the command gets it; nothing in it is expanded but a leading ~/.
_recover_plain() {
    local word=${1/#\~\//$HOME/}
    REPLY=${(Q)word}
}
# What only recover knows at this moment: runs, checkpoints, strategies.
_recover_known() {
    local -a known where
    local line word REPLY
    integer at
    for (( at = 2; at <= $#recover_line; at++ )); do
        word=$recover_line[at]
        case $word in
            (--) break ;;
            (-C|--state-dir|--run)
                (( at++ < $#recover_line )) || break
                _recover_plain "$recover_line[at]"
                where+=($word "$REPLY")
                ;;
            (--state-dir=*|--run=*)
                _recover_plain "${word#*=}"
                where+=(${word%%=*} "$REPLY")
                ;;
        esac
    done
    _recover_plain "$recover_line[1]"
    for line in "${(@f)$("$REPLY" __complete $1 "${where[@]}" 2>/dev/null)}"; do
        word=${line%%$'\t'*}
        [[ -n $word ]] && known+=("${${word//\\/\\\\}//:/\\:}:${line#*$'\t'}")
    done
    # -V: the likeliest first, as they come.
    _describe -V -t $1 $1 known
}
_recover_runs() { _recover_known runs }
_recover_checkpoints() { _recover_known checkpoints }
_recover_strategies() { _recover_known strategies }
# The command that is run is completed as on a line of its own.
_recover_command() {
    (( $recover_line[(Ie)--] )) || return 1
    _normal
}
"#;
    let end = "\nif [ \"$funcstack[1]\"";
    match out.rsplit_once(end) {
        Some((functions, register)) => format!("{functions}{known}{end}{register}"),
        None => out,
    }
}

/// Lines more.
fn fish(script: &str, tree: &clap::Command) -> String {
    let mut out = script.to_owned();
    out.push_str(
        r"
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
",
    );
    for (flag, kind) in FLAGS {
        let on = match flag {
            "to" => "-n '__fish_recover_is rollback' ",
            "strategy" => "-n '__fish_recover_is resume' ",
            _ => "",
        };
        out.push_str(&format!(
            "complete -c recover {on}-l {flag} -x -k -a '(__fish_recover_known {kind})' -d '{}'\n",
            help_of(tree, flag).unwrap_or_default().replace('\\', r"\\").replace('\'', r"\'"),
        ));
    }
    out.push_str("complete -c recover -n '__fish_recover_is resume' -f -k -a '(__fish_recover_known runs)'\n");
    out.push_str(&format!(
        "complete -c recover -n '__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from {}' \
         -f -k -a '(__fish_recover_known checkpoints)'\n",
        SELECTING.join(" ")
    ));
    out
}

/// What the first flag of that name is for.
fn help_of(command: &clap::Command, flag: &str) -> Option<String> {
    let own = command.get_arguments().find(|arg| arg.get_long() == Some(flag)).and_then(clap::Arg::get_help);
    own.map(ToString::to_string).or_else(|| command.get_subcommands().find_map(|sub| help_of(sub, flag)))
}
