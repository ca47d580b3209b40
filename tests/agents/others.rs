//! Agents beside Claude Code and Codex: the same four situations for each, started by name and from a shell.

use std::path::Path;

use crate::agents::{Agent, CHECK, Place, Start, causes, refused_then_resumed, row};
use crate::stub::{Answer, Asked};

const OTHERS: [Agent; 5] = [Agent::Gemini, Agent::Opencode, Agent::Qwen, Agent::Copilot, Agent::Aider];

fn each(starts: &[Start], judge: impl Fn(Agent, &Path, Start) + Sync) {
    // aider takes a minute to give up, in which the others have their turns.
    std::thread::scope(|scope| {
        for agents in [&OTHERS[..4], &OTHERS[4..]] {
            let judge = &judge;
            scope.spawn(move || {
                for agent in agents.iter().copied() {
                    let Some(folder) = agent.installed() else { continue };
                    for start in starts {
                        judge(agent, &folder, *start);
                    }
                }
            });
        }
    });
}

#[test]
fn a_refused_login_is_for_a_person() {
    each(&[Start::Profile], |agent, folder, start| {
        let place = Place::new(agent, folder, |_| vec![agent.unauthorized()]);
        let run = place.run(start, 8, &["--attempts", "3"]);
        row(&place, start, "401", &run);
        assert_eq!(causes(&run), ["AUTH_FAILED"], "{agent:?} {start:?}: {run:#}");
    });
}

#[test]
fn a_failed_check_is_tried_again_with_its_output() {
    each(&[Start::Profile, Start::Shell], |agent, folder, start| {
        let place = Place::new(agent, folder, |env| {
            let path = env.work().join("answer.txt").display().to_string();
            let writes = Answer::Writes { path, content: "good" };
            vec![Answer::Says("I believe it is done."), writes, Answer::Says("Now it is done.")]
        });
        let run = place.run(start, 0, &["--attempts", "3", "--feedback", CHECK]);
        row(&place, start, "fail, retry", &run);
        assert_eq!(causes(&run), ["VERIFICATION_FAILED", "-"], "{agent:?} {start:?}: {run:#}");
        let asked = place.asked();
        let again = asked.iter().flat_map(Asked::user_texts).any(|text| text.contains("answer.txt is not good"));
        assert!(again, "{agent:?} {start:?}: {asked:#?}");
        assert_eq!(place.env.read("answer.txt").trim_end(), "good");
        // Its own conversation is gone on with where the profile knows how; aider has none, but begins all with examples.
        if agent != Agent::Aider {
            assert_eq!(asked[1].goes_on(), start == Start::Profile, "{agent:?} {start:?}: {asked:#?}");
        }
    });
}

#[test]
fn a_throttled_agent_waits_and_goes_on() {
    each(&[Start::Profile], |agent, folder, start| {
        refused_then_resumed(agent, folder, start, ("throttled", agent.throttled(), "RATE_LIMITED"));
    });
}

#[test]
fn a_failing_service_is_tried_again() {
    each(&[Start::Profile], |agent, folder, start| {
        refused_then_resumed(agent, folder, start, ("5xx", agent.server_error(), "UNKNOWN"));
    });
}
