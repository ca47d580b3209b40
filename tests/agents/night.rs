//! A whole night with nobody there: a usage limit in the middle of it, one iteration given up, the rest done.

use std::path::Path;

use recover::testing::model::AgentKind;

use crate::agents::{Agent as _, Place, Start, causes, now, row};
use crate::stub::Answer;

const ITERATIONS: usize = 6;
const LIMITED: usize = 2;
const FAILED_ONCE: usize = 3;
const GIVEN_UP: usize = 4;

fn night(agent: AgentKind, folder: &Path) {
    let place = Place::new(agent, folder, |env| {
        let mut answers = Vec::new();
        for iteration in 1..=ITERATIONS {
            let path = env
                .work()
                .join(format!("done-{iteration}"))
                .display()
                .to_string();
            match iteration {
                LIMITED => answers.push(agent.usage_limit(now() + 20)),
                FAILED_ONCE => answers.push(Answer::Says("I believe it is done.")),
                GIVEN_UP => answers.extend([
                    Answer::Says("One way."),
                    Answer::Says("Another."),
                    Answer::Says("None."),
                ]),
                _ => {}
            }
            if iteration != GIVEN_UP {
                answers.extend([
                    Answer::Writes {
                        path,
                        content: "done",
                    },
                    Answer::Says("It is done."),
                ]);
            }
        }
        answers
    });
    let began = now();
    let iterations = ITERATIONS.to_string();
    let check = "test=test -f done-$RECOVER_ITERATION || { echo \"FAILED: done-$RECOVER_ITERATION is missing\"; exit 1; }";
    let options = [
        "--iterations",
        &iterations,
        "--attempts",
        "3",
        "--feedback",
        check,
    ];
    let run = place.run(Start::Profile, 8, &options);
    row(&place, Start::Profile, "a night", &run);
    eprintln!("{}", place.env.recover(&["report"]).stdout);
    let each: Vec<&str> = run["iterations"]
        .as_array()
        .expect("iterations")
        .iter()
        .map(|one| one["status"].as_str().unwrap_or("?"))
        .collect();
    assert_eq!(
        each,
        [
            "completed",
            "completed",
            "completed",
            "skipped",
            "completed",
            "completed"
        ],
        "{run:#}"
    );
    let failed = "VERIFICATION_FAILED";
    assert_eq!(
        causes(&run),
        // The usage limit was waited for, and is no attempt.
        ["-", "-", failed, "-", failed, failed, failed, "-", "-"],
        "{run:#}"
    );
    // Until the reset and a minute.
    assert!(now() - began >= 60, "{}", now() - began);
    assert!(
        run["run"]["tokens"]["total"]
            .as_u64()
            .is_some_and(|total| total > 0),
        "{run:#}"
    );
    if agent == AgentKind::Claude {
        assert!(
            run["run"]["cost_usd"]
                .as_f64()
                .is_some_and(|cost| cost > 0.0),
            "{run:#}"
        );
    }
}

/// Takes as long as the limit and its buffer.
#[test]
#[ignore = "waits for a usage limit: up to three minutes"]
fn a_night_goes_on_by_itself() {
    std::thread::scope(|scope| {
        for agent in [AgentKind::Claude, AgentKind::Codex] {
            if let Some(folder) = agent.installed() {
                scope.spawn(move || night(agent, &folder));
            }
        }
    });
}
