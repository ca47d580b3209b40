//! Agents driven by the Agent Client Protocol: checkpoints before calls without a hook.

use serde_json::Value;

use recover::testing::model::AgentKind;

use crate::agents::{
    Agent as _, Place, Start, causes, each, failed_check, refused_login, refused_then_resumed, row,
};
use crate::others::OTHERS;
use crate::stub::Answer;

/// The checkpoints of a run, newest last: trigger and description.
fn checkpoints(place: &Place) -> Vec<(String, String)> {
    let listed = place.env.json(0, &["checkpoint", "list"]);
    let mut all = listed["checkpoints"].as_array().cloned().expect("a list");
    all.sort_by_key(|one| one["created_at"].as_str().map(str::to_owned));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.iter()
        .map(|one| (text(&one["trigger"]), text(&one["description"])))
        .collect()
}

/// Those that speak the protocol by an adapter.
const ADAPTED: [AgentKind; 2] = [AgentKind::Claude, AgentKind::Codex];

#[test]
fn adapters_end_as_their_agents_do() {
    each(&ADAPTED, &[Start::Acp], |agent, folder, start| {
        refused_login(agent, folder, start);
        failed_check(agent, folder, start);
        let throttled = ("throttled", agent.throttled(), "RATE_LIMITED");
        refused_then_resumed(agent, folder, start, throttled);
    });
}

/// An edit, a new file and a deletion: a checkpoint before each, without any hook.
#[test]
fn a_checkpoint_comes_before_edits_and_deletions_without_a_hook() {
    let all = [&OTHERS[..], &ADAPTED].concat();
    each(&all, &[Start::Acp], |agent, folder, start| {
        let place = Place::new(agent, folder, |env| {
            let path = |name: &str| env.work().join(name).display().to_string();
            vec![
                Answer::Writes {
                    path: path("new.txt"),
                    content: "new",
                },
                Answer::Runs("rm -rf old".to_owned()),
                Answer::Says("Done."),
            ]
        });
        place.env.write("old/kept.txt", "kept");
        let run = place.run(start, 0, &["--yolo"]);
        row(&place, start, "checkpoints", &run);
        assert_eq!(causes(&run), ["-"], "{agent:?}: {run:#}");
        assert!(place.env.exists("new.txt") && !place.env.exists("old/kept.txt"));
        let all = checkpoints(&place);
        eprintln!("| {:<8} | {all:?} |", agent.as_str());
        let refs = "git for-each-ref --format='%(refname)' 'refs/recover/**'";
        let with = |there: &str, gone: &str| {
            let line = format!(
                "for r in $({refs}); do git cat-file -e $r:{there} 2> /dev/null && ! git cat-file -e $r:{gone} 2> /dev/null && echo $r; done"
            );
            !place.env.sh(&line).stdout.trim().is_empty()
        };
        assert!(
            all.iter().any(|(why, _)| why == "risky"),
            "{agent:?}: {all:?}"
        );
        assert!(
            with("old/kept.txt", "new.txt"),
            "{agent:?}: before the edit"
        );
        let both = place.env.sh(&format!(
            "for r in $({refs}); do git cat-file -e $r:old/kept.txt && git cat-file -e $r:new.txt && echo $r; done"
        ));
        assert!(
            !both.stdout.trim().is_empty(),
            "{agent:?}: before the deletion"
        );
    });
}
