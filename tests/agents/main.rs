//! Real agents' programs against a stand-in for their model's API: what recover makes of how they end.
//!
//! `RECOVER_AGENTS` names the folder of the programs (`tests/agents/package.json` pins them, `.ci/run` installs them).
//! A program that is not there is skipped by name. Nothing here needs a network, and nothing reaches one.

#[path = "../cli/env.rs"]
mod env;
mod stub;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use env::TestEnv;
use serde_json::{Value, json};
use stub::{Answer, Asked, Stub};

/// An agent's program, and how the API refuses in its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agent {
    Claude,
    Codex,
}

/// How the agent is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Bare,
    Shell,
    Env,
    Script,
    Profile,
}

const STARTS: [Start; 5] = [Start::Bare, Start::Shell, Start::Env, Start::Script, Start::Profile];

impl Agent {
    fn program(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// The folder of its program; `None`, said by name, where it is not installed.
    fn installed(self) -> Option<PathBuf> {
        let folder = std::env::var_os("RECOVER_AGENTS").map(PathBuf::from);
        let found = folder.filter(|folder| folder.join(self.program()).exists());
        if found.is_none() {
            eprintln!("skipped: {} is not installed (RECOVER_AGENTS)", self.program());
        }
        found
    }

    /// What follows the program in its unattended form with records.
    fn words(self) -> &'static str {
        match self {
            Self::Claude => "-p --output-format stream-json --verbose --permission-mode acceptEdits",
            Self::Codex => "exec --json --skip-git-repo-check --sandbox danger-full-access",
        }
    }

    fn refuses(self, status: u16, kind: &str, message: &str) -> Answer {
        let body = match self {
            Self::Claude => json!({"type": "error", "error": {"type": kind, "message": message}}),
            Self::Codex => json!({"error": {"type": kind, "code": kind, "message": message}}),
        };
        Answer::Refuses { status, headers: Vec::new(), body }
    }

    fn unauthorized(self) -> Answer {
        match self {
            Self::Claude => self.refuses(401, "authentication_error", "invalid x-api-key"),
            Self::Codex => self.refuses(401, "invalid_api_key", "Incorrect API key provided"),
        }
    }

    /// The account's limit, which is over at `reset` (seconds since 1970).
    fn usage_limit(self, reset: u64) -> Answer {
        match self {
            Self::Claude => Answer::Refuses {
                status: 429,
                headers: vec![
                    ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
                    ("anthropic-ratelimit-unified-representative-claim", "five_hour".to_owned()),
                    ("anthropic-ratelimit-unified-reset", reset.to_string()),
                ],
                body: json!({"type": "error",
                    "error": {"type": "rate_limit_error", "message": "You have reached your limit."}}),
            },
            Self::Codex => Answer::Refuses {
                status: 429,
                headers: Vec::new(),
                body: json!({"error": {"type": "usage_limit_reached", "plan_type": "plus", "resets_at": reset,
                    "message": "The usage limit has been reached"}}),
            },
        }
    }

    fn too_long(self) -> Answer {
        match self {
            Self::Claude => {
                self.refuses(400, "invalid_request_error", "prompt is too long: 212345 tokens > 200000 maximum")
            }
            Self::Codex => self.refuses(
                400,
                "context_length_exceeded",
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
            ),
        }
    }
}

/// A repository in which the agent talks to the stub.
struct Place {
    env: TestEnv,
    stub: Stub,
    agent: Agent,
}

impl Place {
    fn new(agent: Agent, folder: &Path, answers: impl FnOnce(&TestEnv) -> Vec<Answer>) -> Self {
        let mut env = TestEnv::repo();
        let stub = Stub::new(answers(&env));
        let path = std::env::var("PATH").unwrap_or_default();
        env.set("PATH", &format!("{}:{path}", folder.display()));
        for (name, value) in [
            // A subscription's token: only then the program speaks of the account's limits.
            ("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-stub"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("OPENAI_API_KEY", "sk-stub"),
        ] {
            env.set(name, value);
        }
        env.set("ANTHROPIC_BASE_URL", &stub.url());
        let home = env.root().join("home/.codex");
        std::fs::create_dir_all(&home).expect("a home");
        let config = format!(
            "model = \"gpt-5\"\nmodel_provider = \"stub\"\n[model_providers.stub]\nname = \"stub\"\n\
             base_url = \"{}/v1\"\nenv_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\nrequest_max_retries = 0\n\
             stream_max_retries = 0\n",
            stub.url()
        );
        std::fs::write(home.join("config.toml"), config).expect("its configuration");
        Self { env, stub, agent }
    }

    /// `recover run` of the agent, started in this way.
    fn run(&self, start: Start, code: i32, options: &[&str]) -> Value {
        let (program, words) = (self.agent.program(), self.agent.words());
        let line = format!("{program} {words}");
        let mut args = vec!["run", "--prompt", "make the tests pass"];
        args.extend(options);
        let command: Vec<&str> = match start {
            Start::Bare => line.split(' ').collect(),
            Start::Shell => vec!["sh", "-c", &line],
            Start::Env => ["env", "-u", "NOTHING"].into_iter().chain(line.split(' ')).collect(),
            Start::Script => {
                self.env.script("start-agent", &format!("exec {line}"));
                vec!["./start-agent"]
            }
            Start::Profile => Vec::new(),
        };
        if start == Start::Profile {
            // What the machine's own sandbox allows is not asked here.
            args.extend(["--yolo", "--agent", program]);
            if self.agent == Agent::Claude {
                // Not as root.
                args.retain(|word| *word != "--yolo");
            }
        } else {
            args.push("--");
            args.extend(command);
        }
        self.env.json(code, &args)
    }

    /// What the agent's conversations asked the model, without the program's own small requests.
    fn asked(&self) -> Vec<Asked> {
        let is_ours = |asked: &Asked| asked.user_texts().iter().any(|text| text.contains("make the tests pass"));
        self.stub.asked().into_iter().filter(is_ours).collect()
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

/// Each attempt's cause, in the order of the attempts; `-` where it passed.
fn causes(run: &Value) -> Vec<String> {
    let iterations = run["iterations"].as_array().cloned().unwrap_or_default();
    let attempts = iterations.iter().flat_map(|one| one["attempts"].as_array().cloned().unwrap_or_default());
    attempts.map(|attempt| attempt["failure"]["cause"].as_str().unwrap_or("-").to_owned()).collect()
}

/// One row of the table, for people (`--nocapture`).
fn row(place: &Place, start: Start, what: &str, run: &Value) {
    let asked = place.asked();
    eprintln!(
        "{:<8} {:<8} {what:<14} {:<10} {:<32} {:<22} requests {}, sessions {}, {}",
        place.agent.program(),
        format!("{start:?}").to_lowercase(),
        run["outcome"].as_str().unwrap_or("?"),
        causes(run).join(", "),
        run["decision"]["actions"][0].as_str().unwrap_or("-"),
        asked.len(),
        asked.iter().filter(|asked| !asked.goes_on()).count(),
        run["run"]["tokens"]["total"].as_u64().map_or("tokens unknown".to_owned(), |total| format!("{total} tokens")),
    );
}

/// Calls `judge` for both agents, where they are installed, started in every way.
fn each(judge: impl Fn(Agent, &Path, Start)) {
    for agent in [Agent::Claude, Agent::Codex] {
        let Some(folder) = agent.installed() else { continue };
        for start in STARTS {
            judge(agent, &folder, start);
        }
    }
}

#[test]
fn a_refused_login_is_for_a_person() {
    each(|agent, folder, start| {
        let place = Place::new(agent, folder, |_| vec![agent.unauthorized()]);
        let run = place.run(start, 8, &["--attempts", "3"]);
        row(&place, start, "401", &run);
        assert_eq!(causes(&run), ["AUTH_FAILED"], "{agent:?} {start:?}: {run:#}");
    });
}

#[test]
fn a_usage_limit_is_waited_for() {
    each(|agent, folder, start| {
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
    each(|agent, folder, start| {
        let place = Place::new(agent, folder, |_| vec![agent.too_long(), Answer::Says("Done.")]);
        let run = place.run(start, 0, &["--attempts", "2"]);
        row(&place, start, "too long", &run);
        assert_eq!(causes(&run), ["CONTEXT_EXHAUSTED", "-"], "{agent:?} {start:?}: {run:#}");
        assert!(place.asked().iter().all(|asked| !asked.goes_on()), "{agent:?} {start:?}");
    });
}

#[test]
fn a_failed_check_is_tried_again_with_its_output() {
    each(|agent, folder, start| {
        let place = Place::new(agent, folder, |env| {
            let path = env.work().join("answer.txt").display().to_string();
            vec![
                Answer::Says("I believe it is done."),
                Answer::Writes { path, content: "good" },
                Answer::Says("Now it is done."),
            ]
        });
        let check =
            "test=[ \"$(cat answer.txt 2> /dev/null)\" = good ] || { echo 'FAILED: answer.txt is not good'; exit 1; }";
        let run = place.run(start, 0, &["--attempts", "3", "--feedback", check]);
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
    each(|agent, folder, start| {
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
    each(|agent, folder, start| {
        if start != Start::Bare {
            return;
        }
        let place = Place::new(agent, folder, |_| vec![Answer::Hangs(Duration::from_secs(60))]);
        let run = place.run(start, 7, &["--attempts", "1", "--timeout", "5s"]);
        row(&place, start, "hang", &run);
        assert_eq!(causes(&run), ["TOOL_TIMEOUT"], "{agent:?}: {run:#}");
    });
}
