//! Work trees that cannot be captured, or not whole: what becomes of the run.

use crate::env::TestEnv;

/// An agent that writes a file in each attempt, and breaks git's index in the second.
fn breaks_the_index() -> TestEnv {
    let env = TestEnv::repo();
    env.put(
        "../agent.sh",
        "n=$(cat ../n 2>/dev/null || echo 0); n=$((n+1)); echo $n > ../n\n\
         echo $n > made$n.txt; [ $n != 2 ] || { cp .git/index ../index; printf x > .git/index; }\n",
    );
    env
}

#[test]
fn a_run_pauses_where_an_attempts_end_cannot_be_captured() {
    let env = breaks_the_index();
    let ran = env.json(8, &["run", "--run", "r", "--iterations", "4", "--", "sh", "../agent.sh"]);
    assert_eq!((&ran["error"]["code"], &ran["error"]["exit_code"]), (&"no_checkpoint".into(), &8.into()), "{ran:#}");
    assert_eq!((&ran["outcome"], &ran["run"]["status"]), (&"paused".into(), &"paused".into()));
    assert_eq!(env.read("../n"), "2\n", "no attempt begins after that");
    let status = env.recover(&["status"]).expect(0).stdout;
    assert!(status.contains("Stopped: no checkpoint could be taken: damaged: the index"), "{status}");
    let again = env.recover(&["resume"]).expect(8).stdout;
    assert!(again.starts_with("no checkpoint could be taken: "), "{again}");
    assert!(!again.contains("Roll back:"), "{again}");
    assert_eq!(env.read("../n"), "2\n");
    env.sh("cp ../index .git/index").expect(0);
    env.recover(&["resume"]).expect(0);
    assert_eq!(env.read("../n"), "4\n");
}

#[test]
fn a_run_is_not_complete_while_its_last_attempt_is_in_no_checkpoint() {
    let env = breaks_the_index();
    env.recover(&["run", "--run", "r", "--iterations", "2", "--", "sh", "../agent.sh"]).expect(8);
    env.recover(&["resume"]).expect(8);
    env.sh("cp ../index .git/index").expect(0);
    env.recover(&["resume"]).expect(0);
    assert_eq!(env.read("../n"), "2\n", "what was done is not done again");
    let list = env.json(0, &["checkpoint", "list"]);
    let latest = list["checkpoints"].as_array().and_then(|all| all.last()).map(|one| one["id"].clone());
    let id = latest.unwrap_or_default();
    let shown = env.json(0, &["checkpoint", "show", id.as_str().unwrap_or_default()]);
    assert!(shown.to_string().contains("made2.txt"), "{shown:#}");
}

#[test]
fn an_attempt_of_a_loop_begins_only_with_a_checkpoint_of_what_there_is() {
    let env = TestEnv::repo();
    env.sh("cp .git/index ../index; printf x > .git/index").expect(0);
    assert_eq!(env.error(12, &["attempt", "start", "--run", "r"])["code"], "corrupt");
    env.sh("cp ../index .git/index").expect(0);
    env.recover(&["attempt", "start", "--run", "r"]).expect(0);
    env.write("a.txt", "two\n");
    env.sh("printf x > .git/index").expect(0);
    env.recover(&["attempt", "fail", "--run", "r"]).expect(0);
    assert_eq!(env.error(8, &["attempt", "start", "--run", "r"])["code"], "no_checkpoint");
    env.sh("cp ../index .git/index").expect(0);
    env.write("mine.txt", "by hand\n");
    env.recover(&["attempt", "start", "--run", "r"]).expect(0);
    env.sh("rm mine.txt; echo three > a.txt").expect(0);
    env.recover(&["attempt", "fail", "--run", "r"]).expect(0);
    let show = |at: &str| env.json(0, &["checkpoint", "show", at]).to_string();
    assert!(show("@2").contains("mine.txt"), "what was changed before an attempt is in a checkpoint");
}
