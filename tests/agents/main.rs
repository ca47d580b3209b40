//! Real agents' programs against a stand-in for their model's API: what recover makes of how they end.
//!
//! `RECOVER_AGENTS` names the folder of the programs (`tests/agents/package.json` pins them, `.ci/run` installs them).
//! A program that is not there is skipped by name. Nothing here needs a network, and nothing reaches one.

mod agents;
#[path = "../cli/env.rs"]
mod env;
mod hooks;
mod night;
mod others;
mod stopped;
mod stub;

use std::path::Path;
use std::time::Duration;

use agents::{Agent, CHECK, Place, Start, causes, now, refused_then_resumed, row};
use stub::{Answer, Asked};

const STARTS: [Start; 6] = [Start::Bare, Start::Shell, Start::Env, Start::Npx, Start::Script, Start::Profile];

/// Where the way does not matter to what is judged.
const TWO: [Start; 2] = [Start::Shell, Start::Profile];

/// Calls `judge` for both agents, where they are installed, started in these ways.
fn each(starts: &[Start], judge: impl Fn(Agent, &Path, Start)) {
    for agent in [Agent::Claude, Agent::Codex] {
        let Some(folder) = agent.installed() else { continue };
        for start in starts.iter().copied() {
            judge(agent, &folder, start);
        }
    }
}

#[test]
fn a_refused_login_is_for_a_person() {
    each(&STARTS, |agent, folder, start| {
        let place = Place::new(agent, folder, |_| vec![agent.unauthorized()]);
        let run = place.run(start, 8, &["--attempts", "3"]);
        row(&place, start, "401", &run);
        assert_eq!(causes(&run), ["AUTH_FAILED"], "{agent:?} {start:?}: {run:#}");
    });
}

#[test]
fn a_usage_limit_is_waited_for() {
    each(&STARTS, |agent, folder, start| {
        let reset = now() + 3600;
        let place = Place::new(agent, folder, |_| vec![agent.usage_limit(reset)]);
        let run = place.run(start, 6, &["--attempts", "3", "--no-wait"]);
        row(&place, start, "usage limit", &run);
        assert_eq!(causes(&run), ["RATE_LIMITED"], "{agent:?} {start:?}: {run:#}");
        assert_eq!(run["outcome"], "parked", "{agent:?} {start:?}: {run:#}");
    });
}

#[test]
fn too_long_a_conversation_goes_on_in_a_fresh_one() {
    each(&TWO, |agent, folder, start| {
        let place = Place::new(agent, folder, |_| vec![agent.too_long(), Answer::Says("Done.")]);
        let run = place.run(start, 0, &["--attempts", "2"]);
        row(&place, start, "too long", &run);
        assert_eq!(causes(&run), ["CONTEXT_EXHAUSTED", "-"], "{agent:?} {start:?}: {run:#}");
        assert!(place.asked().iter().all(|asked| !asked.goes_on()), "{agent:?} {start:?}");
    });
}

#[test]
fn a_failed_check_is_tried_again_with_its_output() {
    each(&STARTS, |agent, folder, start| {
        let place = Place::new(agent, folder, |env| {
            let path = env.work().join("answer.txt").display().to_string();
            vec![
                Answer::Says("I believe it is done."),
                Answer::Writes { path, content: "good" },
                Answer::Says("Now it is done."),
            ]
        });
        let run = place.run(start, 0, &["--attempts", "3", "--feedback", CHECK]);
        row(&place, start, "fail, retry", &run);
        assert_eq!(causes(&run), ["VERIFICATION_FAILED", "-"], "{agent:?} {start:?}: {run:#}");
        let asked = place.asked();
        let again = asked.iter().flat_map(Asked::user_texts).any(|text| text.contains("answer.txt is not good"));
        assert!(again, "{agent:?} {start:?}: {asked:#?}");
        assert_eq!(place.env.read("answer.txt"), "good");
        // Nothing was rolled back: a profile's agent goes on in its own conversation, any other command begins anew.
        if start == Start::Profile {
            assert_eq!(
                asked.iter().map(Asked::goes_on).collect::<Vec<_>>(),
                [false, true, true],
                "{agent:?}: {asked:#?}"
            );
        }
    });
}

#[test]
fn a_cut_connection_is_tried_again() {
    each(&TWO, |agent, folder, start| {
        let place = Place::new(agent, folder, |_| vec![Answer::Cut, Answer::Cut, Answer::Says("Done.")]);
        let run = place.run(start, 0, &["--attempts", "4"]);
        row(&place, start, "cut", &run);
        assert!(
            causes(&run).iter().all(|cause| cause == "NETWORK_ERROR" || cause == "-"),
            "{agent:?} {start:?}: {run:#}"
        );
    });
}

#[test]
fn an_agent_that_hangs_is_ended() {
    each(&[Start::Bare], |agent, folder, start| {
        let place = Place::new(agent, folder, |_| vec![Answer::Hangs(Duration::from_secs(60))]);
        let run = place.run(start, 7, &["--attempts", "1", "--timeout", "5s"]);
        row(&place, start, "hang", &run);
        assert_eq!(causes(&run), ["TOOL_TIMEOUT"], "{agent:?}: {run:#}");
    });
}

#[test]
fn a_failing_service_is_tried_again() {
    each(&TWO, |agent, folder, start| {
        // Codex calls it "high demand".
        let cause = if agent == Agent::Codex { "RATE_LIMITED" } else { "UNKNOWN" };
        refused_then_resumed(agent, folder, start, ("5xx", agent.server_error(), cause));
    });
}

#[test]
fn a_throttled_agent_waits_and_goes_on() {
    each(&TWO, |agent, folder, start| {
        refused_then_resumed(agent, folder, start, ("throttled", agent.throttled(), "RATE_LIMITED"));
    });
}

/// Used up until somebody pays; Gemini's is there again the next day.
#[test]
fn a_quota_that_is_used_up_is_for_a_person_or_the_next_day() {
    for agent in [Agent::Claude, Agent::Codex, Agent::Gemini] {
        let Some(folder) = agent.installed() else { continue };
        let (code, cause) = if agent == Agent::Gemini { (6, "RATE_LIMITED") } else { (8, "AUTH_FAILED") };
        for start in [Start::Shell, Start::Profile] {
            let place = Place::new(agent, &folder, |_| vec![agent.quota()]);
            let run = place.run(start, code, &["--attempts", "3", "--no-wait"]);
            row(&place, start, "quota", &run);
            assert_eq!(causes(&run), [cause], "{agent:?} {start:?}: {run:#}");
        }
    }
}
