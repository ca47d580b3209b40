//! Agents beside Claude Code and Codex: the same four situations for each, by name, by their protocol and from a shell.

use recover::testing::model::AgentKind;

use crate::agents::{Agent as _, Start, each, failed_check, refused_login, refused_then_resumed};

pub const OTHERS: [AgentKind; 5] = [
    AgentKind::Gemini,
    AgentKind::Opencode,
    AgentKind::Qwen,
    AgentKind::Copilot,
    AgentKind::Aider,
];

#[test]
fn a_refused_login_is_for_a_person() {
    each(
        &OTHERS,
        &[Start::Profile, Start::Acp, Start::Text],
        refused_login,
    );
}

#[test]
fn a_failed_check_is_tried_again_with_its_output() {
    each(
        &OTHERS,
        &[Start::Profile, Start::Acp, Start::Shell, Start::Text],
        |agent, folder, start| {
            // Gemini CLI cannot load a session in the minute in which it was made.
            if (agent, start) != (AgentKind::Gemini, Start::Acp) {
                failed_check(agent, folder, start);
            }
        },
    );
}

#[test]
fn a_throttled_agent_waits_and_goes_on() {
    let starts = [Start::Profile, Start::Acp];
    each(&OTHERS, &starts, |agent, folder, start| {
        refused_then_resumed(
            agent,
            folder,
            start,
            ("throttled", agent.throttled(), "RATE_LIMITED"),
        );
    });
}

#[test]
fn a_failing_service_is_tried_again() {
    each(
        &OTHERS,
        &[Start::Profile, Start::Acp, Start::Text],
        |agent, folder, start| {
            refused_then_resumed(
                agent,
                folder,
                start,
                ("5xx", agent.server_error(), "UNKNOWN"),
            );
        },
    );
}
