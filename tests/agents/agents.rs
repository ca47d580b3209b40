//! The agents' programs: how each is started, how it finds the stub, and how its API refuses.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use recover::testing::model::AgentKind;
use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::stub::{Answer, Asked, Stub};

/// What every prompt of these tests holds.
pub const PROMPT: &str = "make the tests pass";
/// A check that the model passes by writing `good` into `answer.txt`.
pub const CHECK: &str = "test=[ \"$(cat answer.txt 2> /dev/null)\" = good ] || { echo 'FAILED: answer.txt is not good'; exit 1; }";

/// How the agent is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Bare,
    Shell,
    Env,
    Npx,
    Script,
    Profile,
    /// By name, over the Agent Client Protocol.
    Acp,
    /// From a shell, as people read it: without records.
    Text,
}

/// What the tests know of an agent's program.
pub trait Agent: Copy {
    /// The folder of its program; `None`, said by name, where it is not installed.
    fn installed(self) -> Option<PathBuf>;
    /// What people put into a script: the program in its unattended form with records.
    fn line(self) -> &'static str;
    /// The same as people read it.
    fn text_line(self) -> &'static str;
    fn unauthorized(self) -> Answer;
    fn throttled(self) -> Answer;
    fn server_error(self) -> Answer;
    /// A stop that no wait lifts but Gemini's, which is over the next day.
    fn quota(self) -> Answer;
    /// The account's limit, which is over at `reset` (seconds since 1970).
    fn usage_limit(self, reset: u64) -> Answer;
    fn too_long(self) -> Answer;
}

impl Agent for AgentKind {
    fn installed(self) -> Option<PathBuf> {
        let folder = std::env::var_os("RECOVER_AGENTS").map(PathBuf::from);
        let found = folder.filter(|folder| folder.join(self.as_str()).exists());
        if found.is_none() {
            eprintln!(
                "skipped: {} is not installed (RECOVER_AGENTS)",
                self.as_str()
            );
        }
        found
    }

    fn line(self) -> &'static str {
        match self {
            Self::Claude => {
                "claude -p --output-format stream-json --verbose --permission-mode acceptEdits"
            }
            Self::Codex => "codex exec --json --skip-git-repo-check --sandbox danger-full-access",
            Self::Gemini => "gemini --output-format stream-json --approval-mode auto_edit",
            Self::Opencode => "opencode run --format json",
            Self::Qwen => "qwen --output-format stream-json --approval-mode auto-edit",
            Self::Copilot => "copilot --output-format json --no-ask-user --allow-tool=write",
            Self::Aider => {
                "aider --no-pretty --no-check-update --yes-always --message-file \"$RECOVER_PROMPT_FILE\""
            }
            Self::Acp => unreachable!("no program of its own"),
        }
    }

    fn text_line(self) -> &'static str {
        match self {
            Self::Claude => "claude -p --permission-mode acceptEdits",
            Self::Codex => "codex exec --skip-git-repo-check --sandbox danger-full-access",
            Self::Gemini => "gemini --approval-mode auto_edit",
            Self::Opencode => "opencode run",
            Self::Qwen => "qwen --approval-mode auto-edit",
            Self::Copilot => "copilot --no-ask-user --allow-tool=write",
            Self::Aider | Self::Acp => self.line(),
        }
    }

    fn unauthorized(self) -> Answer {
        match self {
            Self::Claude => refuses(self, 401, "authentication_error", "invalid x-api-key"),
            Self::Gemini => {
                let Answer::Refuses {
                    status,
                    headers,
                    mut body,
                } = refuses(
                    self,
                    400,
                    "INVALID_ARGUMENT",
                    "API key not valid. Please pass a valid API key.",
                )
                else {
                    unreachable!("a refusal")
                };
                body["error"]["details"] = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "API_KEY_INVALID", "domain": "googleapis.com"}]);
                Answer::Refuses {
                    status,
                    headers,
                    body,
                }
            }
            _ => refuses(
                self,
                401,
                "invalid_api_key",
                "Incorrect API key provided: sk-stub.",
            ),
        }
    }

    fn throttled(self) -> Answer {
        match self {
            Self::Claude => refuses(
                self,
                429,
                "rate_limit_error",
                "This request would exceed your organization's rate limit of 50 requests per minute.",
            ),
            Self::Gemini => refuses(
                self,
                429,
                "RESOURCE_EXHAUSTED",
                "Resource has been exhausted (e.g. check quota).",
            ),
            _ => refuses(
                self,
                429,
                "rate_limit_exceeded",
                "Rate limit reached for stub on tokens per min (TPM): Limit 30000, Used 29500, Requested 2000.",
            ),
        }
    }

    fn server_error(self) -> Answer {
        match self {
            Self::Claude => refuses(self, 500, "api_error", "Internal server error"),
            Self::Gemini => refuses(
                self,
                500,
                "INTERNAL",
                "An internal error has occurred. Please retry.",
            ),
            // Of the statuses it repeats, the one after which it waits for as long as it is told.
            Self::Qwen => refuses(
                self,
                503,
                "server_error",
                "The service is temporarily unavailable.",
            ),
            _ => refuses(
                self,
                500,
                "server_error",
                "The server had an error while processing your request.",
            ),
        }
    }

    fn quota(self) -> Answer {
        match self {
            Self::Claude => refuses(
                self,
                400,
                "invalid_request_error",
                "Your credit balance is too low to access the Anthropic API.",
            ),
            Self::Gemini => {
                let Answer::Refuses {
                    status,
                    headers,
                    mut body,
                } = refuses(
                    self,
                    429,
                    "RESOURCE_EXHAUSTED",
                    "You exceeded your current quota, please check your plan and billing details.",
                )
                else {
                    unreachable!("a refusal")
                };
                body["error"]["details"] = json!([{"@type": "type.googleapis.com/google.rpc.QuotaFailure",
                    "violations": [{"quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
                    "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "250"}]}]);
                Answer::Refuses {
                    status,
                    headers,
                    body,
                }
            }
            _ => refuses(
                self,
                429,
                "insufficient_quota",
                "You exceeded your current quota, please check your plan and billing details.",
            ),
        }
    }

    fn usage_limit(self, reset: u64) -> Answer {
        match self {
            Self::Claude => Answer::Refuses {
                status: 429,
                headers: vec![
                    ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
                    (
                        "anthropic-ratelimit-unified-representative-claim",
                        "five_hour".to_owned(),
                    ),
                    ("anthropic-ratelimit-unified-reset", reset.to_string()),
                ],
                body: json!({"type": "error",
                    "error": {"type": "rate_limit_error", "message": "You have reached your limit."}}),
            },
            _ => Answer::Refuses {
                status: 429,
                headers: Vec::new(),
                body: json!({"error": {"type": "usage_limit_reached", "plan_type": "plus", "resets_at": reset,
                    "message": "The usage limit has been reached"}}),
            },
        }
    }

    fn too_long(self) -> Answer {
        match self {
            Self::Claude => refuses(
                self,
                400,
                "invalid_request_error",
                "prompt is too long: 212345 tokens > 200000 maximum",
            ),
            Self::Gemini => refuses(
                self,
                400,
                "INVALID_ARGUMENT",
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            ),
            _ => refuses(
                self,
                400,
                "context_length_exceeded",
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
            ),
        }
    }
}

fn refuses(agent: AgentKind, status: u16, kind: &str, message: &str) -> Answer {
    let body = match agent {
        AgentKind::Claude => json!({"type": "error", "error": {"type": kind, "message": message}}),
        AgentKind::Gemini => json!({"error": {"code": status, "message": message, "status": kind}}),
        _ => json!({"error": {"type": kind, "code": kind, "message": message}}),
    };
    // The programs' own repetitions need not take long.
    let headers = if status == 429 || status >= 500 {
        vec![("retry-after-ms", "10".to_owned())]
    } else {
        Vec::new()
    };
    Answer::Refuses {
        status,
        headers,
        body,
    }
}

/// How it finds the stub and keeps to itself.
fn settle(agent: AgentKind, env: &mut TestEnv, url: &str) {
    let home = env.root().join("home");
    let write = |path: &str, text: String| {
        let path = home.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a home");
        std::fs::write(path, text).expect("its configuration");
    };
    let mut set: Vec<(&str, String)> = Vec::new();
    match agent {
        AgentKind::Claude => set.extend([
            ("ANTHROPIC_BASE_URL", url.to_owned()),
            // A subscription's token: only then the program speaks of the account's limits.
            ("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-stub".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("CLAUDE_CODE_MAX_RETRIES", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ]),
        AgentKind::Codex => write(
            ".codex/config.toml",
            format!(
                "model = \"gpt-5\"\nmodel_provider = \"stub\"\n[model_providers.stub]\nname = \"stub\"\n\
                 base_url = \"{url}/v1\"\nenv_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\n\
                 request_max_retries = 0\nstream_max_retries = 0\n"
            ),
        ),
        AgentKind::Gemini => {
            write(
                ".gemini/settings.json",
                json!({"general": {"maxAttempts": 1}, "model": {"name": "gemini-2.5-flash"},
                    "security": {"auth": {"selectedType": "gemini-api-key"}}})
                .to_string(),
            );
            set.extend([
                ("GEMINI_API_KEY", "sk-stub".to_owned()),
                ("GOOGLE_GEMINI_BASE_URL", url.to_owned()),
                ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
            ]);
        }
        AgentKind::Opencode => {
            let model = json!({"name": "stub", "limit": {"context": 200_000, "output": 8_000},
                "cost": {"input": 1, "output": 2}});
            let config = json!({"model": "stub/stub", "small_model": "stub/stub", "provider": {"stub": {
                "npm": "@ai-sdk/openai-compatible", "name": "stub", "models": {"stub": model},
                "options": {"baseURL": format!("{url}/v1"), "apiKey": "sk-stub"}}}});
            set.extend([
                ("OPENCODE_CONFIG_CONTENT", config.to_string()),
                ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
                ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
                // It wants to install what plugins may need.
                ("npm_config_offline", "true".to_owned()),
                ("npm_config_registry", url.to_owned()),
            ]);
        }
        AgentKind::Qwen => {
            write(
                ".qwen/settings.json",
                json!({"security": {"auth": {"selectedType": "openai"}},
                    "model": {"generationConfig": {"maxRetries": 0}}})
                .to_string(),
            );
            set.extend([
                ("OPENAI_BASE_URL", format!("{url}/v1")),
                ("OPENAI_MODEL", "stub".to_owned()),
            ]);
        }
        AgentKind::Copilot => set.extend([
            ("COPILOT_PROVIDER_BASE_URL", format!("{url}/v1")),
            ("COPILOT_PROVIDER_TYPE", "openai".to_owned()),
            ("COPILOT_PROVIDER_API_KEY", "sk-stub".to_owned()),
            ("COPILOT_MODEL", "stub".to_owned()),
            ("COPILOT_OFFLINE", "true".to_owned()),
        ]),
        AgentKind::Acp => {}
        AgentKind::Aider => set.extend([
            ("OPENAI_API_BASE", format!("{url}/v1")),
            ("AIDER_MODEL", "openai/gpt-4o".to_owned()),
            ("AIDER_WEAK_MODEL", "openai/gpt-4o".to_owned()),
            ("AIDER_EDIT_FORMAT", "whole".to_owned()),
            ("AIDER_ANALYTICS", "false".to_owned()),
            ("LITELLM_LOCAL_MODEL_COST_MAP", "True".to_owned()),
        ]),
    }
    for (name, value) in set {
        env.set(name, &value);
    }
    env.set("OPENAI_API_KEY", "sk-stub");
}

/// A repository in which the agent talks to the stub.
pub struct Place {
    pub env: TestEnv,
    pub stub: Stub,
    pub agent: AgentKind,
}

impl Place {
    pub fn new(
        agent: AgentKind,
        folder: &Path,
        answers: impl FnOnce(&TestEnv) -> Vec<Answer>,
    ) -> Self {
        let mut env = TestEnv::repo();
        let stub = Stub::new(answers(&env));
        let path = std::env::var("PATH").unwrap_or_default();
        env.set("PATH", &format!("{}:{path}", folder.display()));
        settle(agent, &mut env, &stub.url());
        if agent == AgentKind::Copilot {
            // It unpacks itself, 235 MiB: once, not in each test's home.
            env.set(
                "COPILOT_PKG_CACHE_HOME",
                &folder.with_file_name(".cache").display().to_string(),
            );
        }
        // Where npx looks.
        env.write(".gitignore", "node_modules\n");
        let modules = folder.parent().expect("node_modules");
        std::os::unix::fs::symlink(modules, env.work().join("node_modules")).expect("a link");
        env.git(&["add", ".gitignore"]);
        env.git(&["commit", "-q", "-m", "ignore"]);
        Self { env, stub, agent }
    }

    /// The words of `recover run` of the agent, started in this way.
    pub fn words(&self, start: Start, options: &[&str]) -> Vec<String> {
        let (program, line) = (self.agent.as_str(), self.agent.line());
        let mut words = vec!["run", "--prompt", PROMPT];
        words.extend(options);
        let script = format!("exec {line}");
        let command: Vec<&str> = match start {
            Start::Bare => line.split(' ').collect(),
            Start::Shell => vec!["sh", "-c", line],
            Start::Text => vec!["sh", "-c", self.agent.text_line()],
            Start::Env => ["env", "-u", "NOTHING"]
                .into_iter()
                .chain(line.split(' '))
                .collect(),
            Start::Npx => ["npx", "--no-install"]
                .into_iter()
                .chain(line.split(' '))
                .collect(),
            Start::Script => {
                self.env.script("start-agent", &script);
                vec!["./start-agent"]
            }
            Start::Profile | Start::Acp => Vec::new(),
        };
        if start == Start::Acp {
            words.extend(["--agent", acp_name(self.agent)]);
        } else if start == Start::Profile {
            // What the machine's own sandbox allows is not asked here.
            if self.agent == AgentKind::Codex {
                words.push("--yolo");
            }
            words.extend(["--agent", program]);
        } else {
            words.push("--");
            words.extend(command);
        }
        words.into_iter().map(str::to_owned).collect()
    }

    /// `recover run` of the agent, started in this way.
    #[track_caller]
    pub fn run(&self, start: Start, code: i32, options: &[&str]) -> Value {
        let words = self.words(start, options);
        self.env
            .json(code, &words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The same, left running.
    pub fn spawn(&self, start: Start, options: &[&str]) -> Child {
        let words = self.words(start, options);
        let mut command = self.env.recover_command(&["--json"]);
        command
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().expect("recover starts")
    }

    /// Waits until the model was asked so often.
    #[track_caller]
    pub fn wait_for_request(&self, number: usize) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.stub.asked().len() < number {
            assert!(
                Instant::now() < end,
                "asked {} times only",
                self.stub.asked().len()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What the agent's conversations asked the model, without the program's own small requests.
    pub fn asked(&self) -> Vec<Asked> {
        let is_ours = |asked: &Asked| asked.user_texts().iter().any(|text| text.contains(PROMPT));
        self.stub.asked().into_iter().filter(is_ours).collect()
    }

    /// The newest words of the user's side in the last request.
    pub fn last_prompt(&self) -> String {
        self.asked()
            .last()
            .and_then(|asked| asked.user_texts().pop())
            .unwrap_or_default()
    }
}

/// Whether it speaks the Agent Client Protocol, by an adapter that has to be installed, too.
fn speaks_acp(agent: AgentKind, folder: &Path) -> bool {
    let adapter = match agent {
        AgentKind::Aider => return false,
        AgentKind::Claude => "claude-agent-acp",
        AgentKind::Codex => "codex-acp",
        _ => return true,
    };
    let is_there = folder.join(adapter).exists();
    if !is_there {
        eprintln!("skipped: {adapter} is not installed (RECOVER_AGENTS)");
    }
    is_there
}

/// The agent, driven by the Agent Client Protocol.
fn acp_name(agent: AgentKind) -> &'static str {
    match agent {
        AgentKind::Gemini => "acp:gemini",
        AgentKind::Opencode => "acp:opencode",
        AgentKind::Qwen => "acp:qwen",
        AgentKind::Copilot => "acp:copilot",
        AgentKind::Claude => "acp:claude",
        AgentKind::Codex => "acp:codex",
        other => panic!("{other:?} has no adapter here"),
    }
}

pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs()
}

/// Each attempt's cause, in the order of the attempts; `-` where it passed.
pub fn causes(run: &Value) -> Vec<String> {
    let iterations = run["iterations"].as_array().cloned().unwrap_or_default();
    let attempts = iterations
        .iter()
        .flat_map(|one| one["attempts"].as_array().cloned().unwrap_or_default());
    attempts
        .map(|attempt| {
            attempt["failure"]["cause"]
                .as_str()
                .unwrap_or("-")
                .to_owned()
        })
        .collect()
}

/// One row of the table, for people (`--nocapture`).
pub fn row(place: &Place, start: Start, what: &str, run: &Value) {
    let asked = place.asked();
    let known = |value: &Value, unit: &str| {
        value
            .as_f64()
            .map_or(format!("{unit} unknown"), |it| format!("{unit} {it}"))
    };
    eprintln!(
        "| {:<8} | {:<7} | {what:<15} | {:<10} | {:<32} | {:<9} | {} requests, {} sessions | {}, {} |",
        place.agent.as_str(),
        format!("{start:?}").to_lowercase(),
        run["outcome"].as_str().unwrap_or("?"),
        causes(run).join(", "),
        run["decision"]["actions"][0].as_str().unwrap_or("-"),
        asked.len(),
        asked.iter().filter(|asked| !asked.goes_on()).count(),
        known(&run["run"]["tokens"]["total"], "tokens"),
        known(&run["run"]["cost_usd"], "cost"),
    );
}

/// Calls `judge` for each of the agents that is installed, started in these ways. aider takes a minute to give up, in which
/// the others have their turns.
pub fn each(
    agents: &[AgentKind],
    starts: &[Start],
    judge: impl Fn(AgentKind, &Path, Start) + Sync,
) {
    let (slow, quick): (Vec<_>, Vec<_>) = agents
        .iter()
        .copied()
        .partition(|agent| *agent == AgentKind::Aider);
    std::thread::scope(|scope| {
        for agents in [quick, slow] {
            let judge = &judge;
            scope.spawn(move || {
                for agent in agents {
                    let Some(folder) = agent.installed() else {
                        continue;
                    };
                    let speaks =
                        |start: &&Start| **start != Start::Acp || speaks_acp(agent, &folder);
                    for start in starts.iter().filter(speaks) {
                        judge(agent, &folder, *start);
                    }
                }
            });
        }
    });
}

/// Nobody but a person can do anything about it.
pub fn refused_login(agent: AgentKind, folder: &Path, start: Start) {
    let place = Place::new(agent, folder, |_| vec![agent.unauthorized()]);
    let run = place.run(start, 8, &["--attempts", "3"]);
    row(&place, start, "401", &run);
    assert_eq!(
        causes(&run),
        ["AUTH_FAILED"],
        "{agent:?} {start:?}: {run:#}"
    );
}

/// Tried again with what the check said: a profile's agent in its own conversation, any other command in a new one.
pub fn failed_check(agent: AgentKind, folder: &Path, start: Start) {
    let place = Place::new(agent, folder, |env| {
        let path = env.work().join("answer.txt").display().to_string();
        let writes = Answer::Writes {
            path,
            content: "good",
        };
        vec![
            Answer::Says("I believe it is done."),
            writes,
            Answer::Says("Now it is done."),
        ]
    });
    let run = place.run(start, 0, &["--attempts", "3", "--feedback", CHECK]);
    row(&place, start, "fail, retry", &run);
    assert_eq!(
        causes(&run),
        ["VERIFICATION_FAILED", "-"],
        "{agent:?} {start:?}: {run:#}"
    );
    let asked = place.asked();
    let again = asked
        .iter()
        .flat_map(Asked::user_texts)
        .any(|text| text.contains("answer.txt is not good"));
    assert!(again, "{agent:?} {start:?}: {asked:#?}");
    assert_eq!(place.env.read("answer.txt").trim_end(), "good");
    assert!(asked.len() > 1, "{agent:?} {start:?}: {asked:#?}");
    // aider has no conversation to go on in, but begins each with examples.
    if agent != AgentKind::Aider {
        assert!(!asked[0].goes_on(), "{agent:?} {start:?}: {asked:#?}");
        assert_eq!(
            asked[1].goes_on(),
            matches!(start, Start::Profile | Start::Acp),
            "{agent:?} {start:?}: {asked:#?}"
        );
    }
}

/// Refused until recover would have to wait, then resumed when the API answers again.
pub fn refused_then_resumed(
    agent: AgentKind,
    folder: &Path,
    start: Start,
    (what, answer, cause): (&str, Answer, &str),
) {
    let place = Place::new(agent, folder, |_| vec![answer]);
    let run = place.run(start, 6, &["--attempts", "4", "--no-wait"]);
    row(&place, start, what, &run);
    assert_eq!(causes(&run), [cause], "{agent:?} {start:?}: {run:#}");
    // That is nobody's attempt.
    assert_eq!(
        run["decision"]["attempts_left"], 4,
        "{agent:?} {start:?}: {run:#}"
    );
    assert_eq!(
        run["decision"]["actions"][0], "park",
        "{agent:?} {start:?}: {run:#}"
    );
    place.stub.answer(vec![Answer::Says("Done.")]);
    let run = place.env.json(0, &["resume", "--wait"]);
    row(&place, start, "\u{2026} resumed", &run);
    assert_eq!(run["outcome"], "complete", "{agent:?} {start:?}: {run:#}");
    // It was not the agent's doing.
    let prompt = place.last_prompt();
    assert!(
        prompt.contains("You were interrupted") && !prompt.contains("DIFFERENT"),
        "{agent:?} {start:?}: {prompt}"
    );
}
