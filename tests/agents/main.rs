//! Real agents' programs against a stand-in for their model's API: what recover makes of how they end.
//!
//! `RECOVER_AGENTS` names the folder of the programs (`tests/agents/package.json` pins them, `.ci/run` installs them).
//! A program that is not there is skipped by name. Nothing here needs a network, and nothing reaches one.

mod acp;
mod agents;
#[path = "../cli/env.rs"]
mod env;
mod hooks;
mod mcp;
mod night;
mod others;
mod plugin;
mod stopped;
mod stub;
mod taken_back;
mod weather;

use std::time::Duration;

use recover::testing::model::AgentKind;

use agents::{
    Agent as _, Place, Start, causes, each, failed_check, now, refused_login, refused_then_resumed,
    row,
};
use stub::Answer;

/// The agents that are started in every way.
const MAIN: [AgentKind; 2] = [AgentKind::Claude, AgentKind::Codex];

const STARTS: [Start; 7] = [
    Start::Bare,
    Start::Shell,
    Start::Env,
    Start::Npx,
    Start::Script,
    Start::Profile,
    Start::Text,
];

/// Where the way does not matter to what is judged.
const FORMS: [Start; 3] = [Start::Shell, Start::Profile, Start::Text];

#[test]
fn a_refused_login_is_for_a_person() {
    each(&MAIN, &STARTS, refused_login);
}

#[test]
fn a_usage_limit_is_waited_for() {
    each(&MAIN, &STARTS, |agent, folder, start| {
        let reset = now() + 3600;
        let place = Place::new(agent, folder, |_| vec![agent.usage_limit(reset)]);
        let run = place.run(start, 6, &["--attempts", "3", "--no-wait"]);
        row(&place, start, "usage limit", &run);
        assert_eq!(
            causes(&run),
            ["RATE_LIMITED"],
            "{agent:?} {start:?}: {run:#}"
        );
        assert_eq!(run["outcome"], "parked", "{agent:?} {start:?}: {run:#}");
    });
}

#[test]
fn too_long_a_conversation_goes_on_in_a_fresh_one() {
    each(&MAIN, &FORMS, |agent, folder, start| {
        let place = Place::new(agent, folder, |_| {
            vec![agent.too_long(), Answer::Says("Done.")]
        });
        let run = place.run(start, 0, &["--attempts", "2"]);
        row(&place, start, "too long", &run);
        assert_eq!(
            causes(&run),
            ["CONTEXT_EXHAUSTED", "-"],
            "{agent:?} {start:?}: {run:#}"
        );
        assert!(
            place.asked().iter().all(|asked| !asked.goes_on()),
            "{agent:?} {start:?}"
        );
    });
}

#[test]
fn a_failed_check_is_tried_again_with_its_output() {
    each(&MAIN, &STARTS, failed_check);
}

#[test]
fn a_cut_connection_is_tried_again() {
    each(&MAIN, &FORMS, |agent, folder, start| {
        let place = Place::new(agent, folder, |_| {
            vec![Answer::Cut, Answer::Cut, Answer::Says("Done.")]
        });
        let run = place.run(start, 0, &["--attempts", "4"]);
        row(&place, start, "cut", &run);
        assert!(
            causes(&run)
                .iter()
                .all(|cause| cause == "NETWORK_ERROR" || cause == "-"),
            "{agent:?} {start:?}: {run:#}"
        );
    });
}

#[test]
fn an_agent_that_hangs_is_ended() {
    each(&MAIN, &[Start::Bare], |agent, folder, start| {
        let place = Place::new(agent, folder, |_| {
            vec![Answer::Hangs(Duration::from_secs(60))]
        });
        let run = place.run(start, 7, &["--attempts", "1", "--timeout", "5s"]);
        row(&place, start, "hang", &run);
        assert_eq!(causes(&run), ["TOOL_TIMEOUT"], "{agent:?}: {run:#}");
    });
}

#[test]
fn a_failing_service_is_tried_again() {
    each(&MAIN, &FORMS, |agent, folder, start| {
        // Codex calls it "high demand".
        let cause = if agent == AgentKind::Codex {
            "RATE_LIMITED"
        } else {
            "UNKNOWN"
        };
        refused_then_resumed(agent, folder, start, ("5xx", agent.server_error(), cause));
    });
}

#[test]
fn a_throttled_agent_waits_and_goes_on() {
    each(&MAIN, &FORMS, |agent, folder, start| {
        refused_then_resumed(
            agent,
            folder,
            start,
            ("throttled", agent.throttled(), "RATE_LIMITED"),
        );
    });
}

/// Used up until somebody pays; Gemini's is there again the next day.
#[test]
fn a_quota_that_is_used_up_is_for_a_person_or_the_next_day() {
    let agents = [AgentKind::Claude, AgentKind::Codex, AgentKind::Gemini];
    each(&agents, &FORMS, |agent, folder, start| {
        let (code, cause) = if agent == AgentKind::Gemini {
            (6, "RATE_LIMITED")
        } else {
            (8, "AUTH_FAILED")
        };
        let place = Place::new(agent, folder, |_| vec![agent.quota()]);
        let run = place.run(start, code, &["--attempts", "3", "--no-wait"]);
        row(&place, start, "quota", &run);
        assert_eq!(causes(&run), [cause], "{agent:?} {start:?}: {run:#}");
    });
}
