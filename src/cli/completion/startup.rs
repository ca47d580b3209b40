//! What enables completion in a shell.

use clap_complete::Shell;

/// What a shell's startup file, or its folder of completions, holds: it asks the program that is installed at that
/// moment, so that no script of another version is ever left behind.
pub(crate) fn line(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => "eval \"$(COMPLETE=bash recover)\"\n",
        Shell::Zsh => {
            "#compdef recover\neval \"$(COMPLETE=zsh recover)\"\n[[ $funcstack[1] != _recover ]] || _recover \"$@\"\n"
        }
        Shell::Fish => "command -q recover; and COMPLETE=fish recover | source\n",
        Shell::Elvish => "eval (E:COMPLETE=elvish recover | slurp)\n",
        _ => {
            "$env:COMPLETE = \"powershell\"\nrecover | Out-String | Invoke-Expression\nRemove-Item Env:\\COMPLETE\n"
        }
    }
}
