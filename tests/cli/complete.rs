//! Completions of what only `recover` knows: asked of the hidden command, and through bash's own completion.

use crate::env::TestEnv;
use crate::manual_fix::failed_run;

/// What bash completes at the end of a line.
fn completed(env: &TestEnv, line: &str) -> Vec<String> {
    let script = format!(
        "source completions.bash
         PATH='{bin}':$PATH
         COMP_LINE={line} COMP_POINT=${{#COMP_LINE}}
         read -ra COMP_WORDS <<< \"${{COMP_LINE//=/ = }}\"
         [[ $COMP_LINE == *' ' ]] && COMP_WORDS+=('')
         COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
         function=$(complete -p recover | sed 's/.*-F \\([a-z_]*\\) .*/\\1/')
         $function recover \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        bin = std::path::Path::new(env!("CARGO_BIN_EXE_recover")).parent().expect("a folder").display(),
        line = shlex::try_quote(line).expect("no NUL"),
    );
    let output = env.command("bash").args(["--norc", "-c", &script]).output().expect("bash starts");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).filter(|word| !word.is_empty()).collect()
}

fn has_bash(env: &TestEnv) -> bool {
    let found = env.sh("command -v bash").code == 0;
    if !found {
        eprintln!("skipped: no bash");
    }
    found
}

// The contract: runs, checkpoints and strategies are completed, and nothing is said where there are none.
#[test]
fn words_come_a_line_each() {
    let env = failed_run();
    let words = |kind: &str| {
        let ran = env.recover(&["__complete", kind]).expect(0);
        assert!(ran.stderr.is_empty(), "{}", ran.stderr);
        ran.stdout.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(words("runs"), ["r 1"]);
    let checkpoints = words("checkpoints");
    assert_eq!(&checkpoints[..3], ["latest", "good", "initial"]);
    assert!(checkpoints.len() > 4 && checkpoints[3].starts_with("ckpt_"), "{checkpoints:?}");
    assert!(words("strategies").contains(&"rollback_and_retry".to_owned()));

    let empty = TestEnv::plain();
    for kind in ["runs", "checkpoints"] {
        let ran = empty.recover(&["__complete", kind]).expect(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""), "{kind}");
    }
    empty.write(".ultraplan/recover.toml", "not toml");
    let ran = empty.recover(&["__complete", "runs"]).expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert!(!empty.exists(".ultraplan/state"), "nothing is made");
}

#[test]
fn bash_completes_them() {
    let env = failed_run();
    if !has_bash(&env) {
        return;
    }
    env.write("completions.bash", env.recover(&["completions", "bash"]).expect(0).stdout);
    let checkpoint = env.json(0, &["checkpoint", "list"])["checkpoints"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(completed(&env, "recover resume "), ["r\\ 1"]);
    assert_eq!(completed(&env, "recover status --run "), ["r\\ 1"]);
    assert_eq!(completed(&env, "recover --run="), ["r\\ 1"]);
    assert!(completed(&env, "recover rollback --to ").contains(&checkpoint));
    assert_eq!(completed(&env, "recover rollback --to la"), ["latest"]);
    assert_eq!(completed(&env, &format!("recover checkpoint diff latest {checkpoint}")), [checkpoint.as_str()]);
    assert_eq!(completed(&env, "recover -C . checkpoint show --patch go"), ["good"]);
    assert_eq!(completed(&env, "recover resume --strategy rol"), ["rollback_and_retry"]);
    // Everything else is clap's.
    assert_eq!(completed(&env, "recover rollb"), ["rollback"]);
    assert!(completed(&env, "recover resume --str").contains(&"--strategy".to_owned()));
    assert!(!completed(&env, "recover run -- ").contains(&"r\\ 1".to_owned()));
    assert!(!completed(&env, "recover resume --instructions ").contains(&"r\\ 1".to_owned()));
    // From another folder.
    let elsewhere = format!("recover -C {} resume ", env.work().display());
    std::fs::create_dir(env.root().join("other")).unwrap();
    assert_eq!(completed(&env, &format!("{elsewhere}r")), ["r\\ 1"]);
    // A name is a name, whatever it says.
    let odd = "$(touch${IFS}PWNED)`touch PWNED`";
    env.json(0, &["checkpoint", "create", "--run", odd]);
    let offered = completed(&env, "recover resume ");
    assert!(offered.iter().any(|word| word.starts_with(r"\$\(touch")), "{offered:?}");
    assert!(!env.exists("PWNED"));
}
