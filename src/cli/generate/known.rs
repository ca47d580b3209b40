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
        Shell::Fish => fish(script),
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
# What only recover knows at this moment: runs, checkpoints, strategies.
_recover_known() {{
    local cur="$2" prev="$3" kind="" place="" at word
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
            {where_flags})
                if ((at + 1 < COMP_CWORD)); then
                    where+=("$word" "${{COMP_WORDS[at + 1]/#\~\//$HOME/}}")
                fi
                ;;
        esac
        case "$word" in
            {valued}) at=$((at + 1)) ;;
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
        while IFS=$'\t' read -r word _; do
            [[ "$word" == "$cur"* ]] && COMPREPLY+=("$(printf '%q' "$word")")
        done < <("${{COMP_WORDS[0]}}" __complete "$kind" "${{where[@]}}" 2>/dev/null)
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

/// The actions of arguments replaced.
fn zsh(script: &str) -> String {
    let action = |line: &str| -> Option<&'static str> {
        let flag = FLAGS.iter().find(|(flag, _)| line.starts_with(&format!("'--{flag}=[")));
        let selects = ["selector -- ", "selectors -- ", "from -- ", "to -- "];
        let positional = line.trim_start_matches(['\'', ':', '*']);
        match flag {
            Some((_, kind)) => Some(kind),
            None if line.starts_with("'::run_id -- ") => Some("runs"),
            None if line.starts_with('\'') && selects.iter().any(|name| positional.starts_with(name)) => {
                Some("checkpoints")
            }
            None => None,
        }
    };
    let mut out = String::new();
    for line in script.lines() {
        match (action(line), line.strip_suffix(":_default' \\")) {
            (Some(kind), Some(before)) => out.push_str(&format!("{before}:_recover_{kind}' \\\n")),
            _ => out.push_str(&format!("{line}\n")),
        }
    }
    let known = r#"
# What only recover knows at this moment: runs, checkpoints, strategies.
_recover_known() {
    local -a known where
    local line flag
    for flag in -C --state-dir --run; do
        [[ -n ${opt_args[$flag]} ]] && where+=($flag "${(Q)opt_args[$flag]}")
    done
    for line in "${(@f)$(recover __complete $1 $where 2>/dev/null)}"; do
        [[ -n $line ]] && known+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    _describe -t $1 $1 known
}
_recover_runs() { _recover_known runs }
_recover_checkpoints() { _recover_known checkpoints }
_recover_strategies() { _recover_known strategies }
"#;
    let end = "\nif [ \"$funcstack[1]\"";
    match out.rsplit_once(end) {
        Some((functions, register)) => format!("{functions}{known}{end}{register}"),
        None => out,
    }
}

/// Lines more.
fn fish(script: &str) -> String {
    let mut out = script.to_owned();
    out.push_str(
        r"
# What only recover knows at this moment: runs, checkpoints, strategies.
function __fish_recover_known
    set -l words (commandline -opc)
    set -l where
    for at in (seq 2 (math (count $words) - 1))
        if contains -- $words[$at] -C --state-dir --run
            set -a where $words[$at] $words[(math $at + 1)]
        end
    end
    recover __complete $argv[1] $where 2>/dev/null
end
",
    );
    for (flag, kind) in FLAGS {
        let on = match flag {
            "to" => "-n '__fish_recover_using_subcommand rollback' ",
            "strategy" => "-n '__fish_recover_using_subcommand resume' ",
            _ => "",
        };
        out.push_str(&format!("complete -c recover {on}-l {flag} -x -a '(__fish_recover_known {kind})'\n"));
    }
    out.push_str(
        "complete -c recover -n '__fish_recover_using_subcommand resume' -f -a '(__fish_recover_known runs)'\n",
    );
    out.push_str(&format!(
        "complete -c recover -n '__fish_recover_using_subcommand checkpoint; and __fish_seen_subcommand_from {}' \
         -f -a '(__fish_recover_known checkpoints)'\n",
        SELECTING.join(" ")
    ));
    out
}
