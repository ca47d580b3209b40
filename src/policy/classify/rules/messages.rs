//! What agents' programs, the APIs behind them and a loop's author say of what happened.

use super::{
    AGENT, AGENT_NETWORK, AGENT_UNKNOWN, ANY, AUTH, BAD_REQUEST, BROKEN, BUILD, CONTEXT,
    COST_LIMIT, CRASHED, FAILED, FEEDBACK, INVALID, KILLED, LINT, MAX_TURNS, MISSING, NO_MODEL,
    NO_SESSION, OUT_OF_MEMORY, OVERLOADED, QUOTA, Rule, SERVICE, THROTTLED, TIMEOUT, USAGE_LIMIT,
    rule, table,
};
use crate::model::failure::LOGIN_SERVICE;

/// What the error says.
pub(super) const RULES: &[Rule] = &table(
    ANY,
    AUTH,
    [
        rule(
            "agent.spend-cap",
            r"(?i)spend(?:ing)? (?:cap|limit)|(?:hit|reached|exceeded) (?:your|the) (?:monthly )?(?:billing|budget|hard) limit|hard limit has been reached|billing_hard_limit",
        )
        .means(QUOTA),
        // What a plan has for a month is not waited for.
        rule(
            "agent.plan-quota",
            r"(?i)\b(?:hit|reached|exceeded|exhausted|used(?: up)?) (?:\S+ ){0,4}?monthly (?:\S+ ){0,3}?(?:limit|quota|allowance|usage|requests|credits|budget)|(?:^|[^/\w])monthly (?:\S+ ){0,3}?(?:limit|quota|allowance|usage|requests|credits) (?:\S+ ){0,3}?(?:exceeded|reached|exhausted|used up|spent)|\bpremium[- ](?:\w+ ){0,2}?(?:allowance|quota|limit)|(?:limit|quota|allowance|used (?:all|up)) (?:\S+ ){0,3}?premium requests|\byou have no quota\b|\bquota exceeded\W+upgrade\b",
        )
        .means(QUOTA),
        rule(
            "agent.usage-limit",
            r"(?i)(?:hit|reached|exceeded|exhausted) (?:your|the|its|our)? ?(?:\S+ ){0,3}?(?:usage|session|weekly|daily|monthly|hourly|5-hour|five-hour|opus|sonnet|plan|account|free[- ]tier|fair use) (?:\S+ )?(?:limit|quota)|(?:hit|reached|exceeded) (?:your|the|its|our) (?:\S+ ){0,2}(?:limit|quota)\W{1,9}resets?\b|usage limit (?:has been |was )?(?:reached|exceeded)|\b\d+-hour limit reached|limit reached\W+resets|out of (?:extra|included|fast) (?:usage|requests)|out of (?:\w+ ){0,2}?(?:usage|credits|requests)\W{1,9}resets?\b|usage_?limit_?(?:reached|error)|\bfree (?:\w+ ){0,2}?(?:usage|quota|requests)(?: \w+){0,2}? (?:exceeded|exhausted|reached|used up)|\boauth (?:\w+ )?quota exceeded|\bused (?:all|up)(?: \S+){1,4}? (?:usage|quota|requests|allowance)\b|\bcode\W{1,4}13(?:04|08|10)\b|\[13(?:04|08|10)\]|(?:weekly|daily|session|monthly|opus) limit (?:reached|exceeded)|limit will reset at|try again (?:at|on) (?:\d+:\d\d|[A-Z][a-z]{2} \d)|(?:hourly|daily|weekly|monthly) (?:\w+ )?(?:quota|limit) (?:exceeded|reached)|limit resets (?:in|at|on)\b|quota (?:resets?|will reset|to reset)|PerDay\b|requests? per day|\(RPD\)|reached the (?:daily|weekly|monthly)|\b(?:allowance|usage|quota)\b.{0,20} (?:is|was|has been) (?:used up|exhausted|spent)",
        )
        .means(USAGE_LIMIT),
        rule(
            "agent.throttled-quota",
            r"(?i)RESOURCE(?:_| has been )EXHAUSTED|request a quota increase|retryDelay|please (?:retry|try again) in [\d.]+ ?(?:m?s|sec|min|h)|(?:tokens|requests|images|input tokens|output tokens|TPM|RPM)(?: per |/)(?:min|sec|hour|minute|second)|tokens per min|exhausted your (?:capacity|quota)|generate_content_\w+requests|quota metric",
        )
        .means(THROTTLED),
        rule(
            "agent.billing",
            r"(?i)insufficient[_ ](?:quota|credits?|balance|funds)|credit balance is too low|out of (?:\w+ )?credits|no credits|not enough credits|(?:add|purchase|buy|requires?|needs?|upgrade for) (?:more|additional|extra|\d+) credits|(?:add|purchase|buy) credits|can only afford|top up|billing (?:not active|error|issue|disabled|account)|billing_(?:not_active|error)|exceeded your current quota|check your plan and billing|payment required|(?:account|organization) (?:is |has been )?(?:deactivated|disabled|suspended|not active|on hold)|subscription (?:has )?(?:expired|ended|inactive|required|is not active)|requires? (?:a )?(?:paid|pro|plus|max|active) (?:plan|subscription)|free (?:trial|tier) (?:has )?(?:been )?(?:ended|expired|discontinued)|overdue|prepay|\b402\b|\bcode\W{1,4}(?:1113|1309)\b|\[(?:1113|1309)\]",
        )
        .means(QUOTA),
        rule(
            "agent.overloaded",
            r"(?i)\boverload(?:ed)?(?:_error)?\b|\b529\b|model is (?:currently )?at capacity|at capacity|experiencing high (?:demand|load|traffic)|exceeded retry limit, last status: (?:429|5\d\d)|no capacity|server is busy|too busy|slow_down|high (?:demand|traffic)|currently (?:unavailable due to|busy)|capacity constraints",
        )
        .means(OVERLOADED),
        rule(
            "agent.rate-limit",
            r"(?i)\brate[- _]?limit(?:s|ed|ing|_error|_exceeded)?\b|RateLimitError|ratelimit|too many (?:\w+ )?requests|\b(?:error|rejected|failed)\b[^:\n]{0,40}: \(?429\b|^\W*429\b|temporarily limiting requests|request rejected \(429\)|\bthrottl(?:ed|ing)(?:Exception)?|ThrottlingException|TooManyRequests|(?:status(?: code)?|HTTP|error|code)\W{0,4}429\b|\b429\b \W*(?:Too|rate)|\(429\)",
        )
        .means(THROTTLED),
        rule(
            "agent.context",
            r"(?i)(?:prompt|conversation|input|context) (?:\w+ ){0,2}too long|(?:no longer|not|n't) fits? (?:in(?:to|side)? )?(?:the )?(?:model|context)|hit (?:a|the) token limit|exhausted (?:the )?context window|context[_ ](?:length|window|limit)[_ ]?(?:exceeded|limit|overflow|is full)?|autocompact is thrashing|ran out of room|exceeds? (?:the )?(?:model's )?(?:maximum )?(?:context|token limit|maximum (?:number of )?(?:tokens|input))|maximum context length|(?:input )?token (?:count|limit).{0,60}exceed|exceed.{0,40}(?:context|token) (?:window|limit|length)|too many (?:input )?tokens|input length and .max_tokens. exceed|reduce the length of (?:the )?(?:messages|prompt|input)|ContextWindowExceeded|ContextOverflow|string too long|prompt too large|request too large for model|larger than the (?:maximum )?context|max_output_tokens|output token maximum|exceeds? the limit of \d+ tokens|\btokens? \(?[\d,]+\)? exceed|range of input length|n_ctx|maximum prompt length|prompt contains \d+ tokens|tokens? > \d+ maximum|model_max_prompt_tokens|compact(?:ion)? failed|MessageOutputLengthError",
        )
        .means(CONTEXT),
        rule(
            "agent.cost-limit",
            r"(?i)error_max_budget_usd|max(?:imum)? budget|budget (?:limit )?(?:exceeded|reached)|cost limit",
        )
        .means(COST_LIMIT),
        rule(
            "agent.max-turns",
            r"(?i)error_max_turns|(?:max(?:imum)?|reached|exceeded).{0,24}\b(?:turns|iterations|steps|session turns|tool (?:calls|rounds))\b|max_turns|FatalTurnLimited|turn limit|loop detected",
        )
        .means(MAX_TURNS),
        rule(
            "agent.session",
            r"(?i)no (?:conversation|session|thread|rollout|saved session|chat|checkpoint)s? (?:was )?(?:found|with)|no session, task, or name matched|(?:session|conversation|thread)(?: \S+)? (?:was )?(?:not found|does not exist|could not be found|no longer exists)|session id .*(?:not found|invalid)|invalid session identifier|no thread with id|could not find (?:session|conversation|thread)|(?:unable|failed) to (?:resume|find|load) (?:the )?(?:session|conversation|thread)|no previous (?:session|conversation|response)|previous_response_not_found|error resuming session",
        )
        .means(NO_SESSION),
        rule(
            "agent.model",
            r"(?i)issue with the selected model|model[_ ]not[_ ]found|ModelNotFound|(?:model|deployment)\b(?:[^.,;{}\n]|\.\w){0,80}(?:does not exist|not found|is not (?:available|supported|found|a valid)|is unknown|has been (?:deprecated|retired|decommissioned)|doesn't exist|no longer (?:available|supported)|is invalid)|(?:unknown|invalid|no such|unsupported|unrecognized) (?:\w+ )?model\b|not a valid model|models/\S+ is not found|not_found_error|DeploymentNotFound|decommissioned|no endpoints found|provider .*not found|unknown provider|ProviderModelNotFound|agent .* not found",
        )
        .means(NO_MODEL),
        rule(
            LOGIN_SERVICE,
            r"(?i)(?:\boauth\b|\brefresh\w*\b.{0,20}\btokens?\b|\btokens? refresh|\blog ?in\b|\bsign[- ]?in\b|\bauthentication (?:server|service)).{0,80}(?:\b50[0234]\b|service (?:is )?(?:temporarily )?unavailable|bad gateway|\bE(?:CONN(?:REFUSED|RESET)|NOTFOUND|AI_AGAIN|TIMEDOUT)\b|timed out|fetch failed)",
        )
        .means(SERVICE),
        rule(
            "agent.auth",
            r"(?i)not logged in|please (?:run )?[`'\x22]?(?:\S+ )?/?(?:log ?in|auth)\b|/login\b|(?:invalid|incorrect|missing|no|expired|bad|wrong|revoked|malformed) (?:\S+ )?(?:x-)?(?:api[- _]?key|access token|auth token|token|credentials?|bearer|authentication|refresh token|api token)|invalid[_ ](?:x-)?api[_ ]key|API key (?:not (?:valid|found|set)|is (?:missing|invalid|required|not)|expired|must be)|oauth (?:token|session|authentication|access|error|org)|(?:token|session|login|credentials?|api key|key)\b.{0,30}(?:has |have |was |were |been |is |are ){0,3}(?:expired|revoked|invalid(?:ated)?|rejected|not (?:valid|found|set|configured|provided))|authentication[_ ](?:error|failed|failure|required)|AuthenticationError|unauthori[sz]ed|unauthenticated|authorization (?:failed|required)|not authenticated|permission[_ ](?:error|denied)|PermissionDenied(?:Error)?|forbidden|access (?:was |is |has been )?denied|AccessDenied|does not have access|not authorized|(?:set|provide|configure|specify|export|missing|need|requires?) (?:an? |the |your |one of )*(?:\S*API_KEY|\S*_TOKEN|auth(?:entication)? method|api key|credentials)|Auth method|sign in|log in (?:again|first|to)|logged out|ProviderAuthError|FatalAuthentication|(?:status(?: code)?|HTTP|error|code|status:)\W{0,4}40[13]\b|\b401\b|\b403\b|(?:could not|unable to|failed to) (?:load|locate|find|get|obtain|retrieve|resolve) (?:\S+ ){0,3}credentials|could not (?:refresh|validate|authenticate)|environment variables?: \S*_(?:KEY|TOKEN)|security token",
        ),
        rule(
            "agent.network",
            r"(?i)unable to connect|fetch failed|failed to fetch|stream (?:disconnected|error|closed|ended|was reset|interrupted)|disconnected before completion|connection (?:failed|error|refused|reset|closed|lost|aborted|timed out|terminated|dropped|was)|ConnectionError|APIConnectionError|connect(?:ion)? timeout|\bE(?:CONN(?:REFUSED|RESET|ABORTED)|NOTFOUND|AI_AGAIN|TIMEDOUT|HOSTUNREACH|NETUNREACH|PIPE)\b|socket hang up|getaddrinfo|network (?:error|is unreachable|connection|request failed|failure|timeout)|request timed out|request timeout|timed out waiting for|(?:APITimeout|ConnectTimeout|ReadTimeout|Timeout)(?:Error|Exception)?|error sending request|dns error|name resolution|could not (?:resolve|connect|reach)|couldn't connect|cannot connect|failed to connect|no route to host|certificate|TLS|SSL|UND_ERR|terminated$|other side closed|premature close|premature EOF|idle timeout|socket connection|tunneling socket|proxy|offline|internet connection|reset by peer|broken pipe|aborted$|transport error|websocket",
        )
        .means(AGENT_NETWORK),
        rule(
            "agent.service",
            r"(?i)internal[_ ]?server[_ ]?error|\bapi_error\b|server[_ -](?:side )?(?:error|issue)|InternalServerError|InternalError|error (?:occurred )?while processing|bad gateway|gateway time-?out|service (?:is )?(?:temporarily )?unavailable|ServiceUnavailable|backend error|\bINTERNAL\b|\bUNAVAILABLE\b|DEADLINE_EXCEEDED|(?:status(?: code)?|HTTP|error|code|status:|API Error:?)\W{0,4}5\d\d\b|\b50[0234]\b|upstream|an unexpected error|try again later|empty (?:response|stream)|no response|something went wrong",
        )
        .means(SERVICE),
        rule(
            "agent.request",
            r"(?i)tool use concurrency|invalid[_ ]?(?:request|argument|parameter|params|prompt|schema|type|value|json)(?:_error)?|BadRequest|bad request|INVALID_ARGUMENT|FatalInput|FatalConfig|unprocessable|validation error|malformed|(?:status(?: code)?|HTTP|error|code|status:|API Error:?)\W{0,4}4(?:00|13|22)\b|unsupported (?:parameter|value|content|image|media)|unknown (?:parameter|option|argument|flag)|unexpected argument|missing required|could not process (?:image|pdf)|image (?:was |exceeds|is )|request (?:body )?(?:is )?too large|request_too_large|must (?:alternate|be|have|start|not|contain|match|end)|tool_use. ids|tool_result|function_call|thought_signature|not supported|unrecognized (?:option|argument|flag|request)|no (?:prompt|input) provided|input must be provided|invalid option|(?:option|argument|flag|value)\b.{0,80} is invalid|allowed choices are|content (?:filter|policy|management)|safety|blocked|refus",
        )
        .means(BAD_REQUEST),
        rule(
            "agent.not-found",
            r"(?i)(?:status(?: code)?|HTTP|error|code|status:|API Error:?)\W{0,4}404\b|\b404\b|NotFoundError|NOT_FOUND|\bnot found\b|does not exist",
        )
        .means(NO_MODEL),
    ],
);

/// Lines in which a program speaks of its own trouble, as against prose and what tools printed.
pub(super) const LINES: &[Rule] = &table(
    ANY,
    AGENT_UNKNOWN,
    [
        rule(
            "agent-line.prefixed",
            r"(?i)^[^\w\[]*(?:\[?\d{4}-\d\d-\d\dT[\d:.]+Z?\]?\s+)?\[?(?:\w+ )?(?:api|claude|codex|gemini|opencode|aider|stream|provider|request|fatal|server|http|runtime|unexpected|unhandled|critical|an|internal|execution|turn|agent|model|llm|session|goose|amp|cursor|qwen|cline)?[ _-]?(?:api )?(?:error|exception|fatal|failed|failure)\b|^(?:\s*\d+: )?[A-Z][\w\x27 .,:()-]{0,80}\b\w*[Ee]rror: \S|^\s*\d+: Failed to |\bAPI (?:call |request )?(?:returned|responded|failed|error)\b|\b(?:returned|responded with|HTTP(?: status)?|status(?: code)?):? \(?[45]\d\d\b",
        ),
        // What a runtime says of a connection, without a word before it.
        rule(
            "agent-line.connection",
            r"^\W*(?:\w+ )?E(?:CONN(?:REFUSED|RESET|ABORTED)|NOTFOUND|AI_AGAIN|TIMEDOUT|HOSTUNREACH|NETUNREACH|PIPE)\b|^\W*socket hang up\b|^(?:\S*/)?curl: \(\d+\) |^request to \S+ failed\b|^dial (?:tcp|udp)\b",
        ),
        rule(
            "agent-line.exception",
            r"^[^\w]*(?:\w+\.)*\w*(?:Error|Exception|Exceeded)\b ?[:({\[]",
        ),
        rule(
            "agent-line.sentence",
            r"(?i)^\W*(?:no saved session found|you(?:.{1,3}ve| have) (?:hit|reached|exceeded|exhausted|run out|used|no quota)|you(?:.{1,3}re| are) out of|out of|free (?:\w+ ){0,2}?(?:usage|quota|requests)|qwen oauth|\[13\d\d\]|(?:the )?\w+ (?:\w+ )?rejected (?:the|your) (?:prompt|request|input)|you (?:exceeded|need to (?:log|sign)|are not (?:logged|authenticated|signed|authorized))|your (?:\S+ ){0,4}(?:limit|quota|allowance|credit|subscription|account|organization|plan|session|api key|token|workspace|input)|claude (?:ai |code )?(?:usage|max|pro|\S+ limit)|credit balance|insufficient|prompt is too long|conversation (?:is )?too long|context (?:window|length)|autocompact|not logged in|invalid (?:api key|x-api|session|auth)|incorrect api key|missing api key|no api key|api key|oauth|authentication|unauthorized|forbidden|please (?:run|set|log|sign|retry|try again|check|provide|configure)|unable to (?:connect|reach|authenticate)|could not (?:connect|resolve|reach|authenticate|find)|cannot connect|failed to (?:connect|authenticate|fetch|resume|login|sign|get|load|send|refresh)|fetch failed|network|connection|stream (?:error|disconnected)|request (?:rejected|timed out|too large|failed|was)|(?:api )?rate[- ]limit|E(?:TIMEDOUT|CONN(?:RESET|REFUSED|ABORTED)|NOTFOUND|AI_AGAIN)\b|too many requests|quota|overloaded|repeated|server (?:is|error|overloaded)|service|internal server|we(?:.{1,3}re| are) (?:currently )?experiencing|(?:the |selected )(?:model|server|service|api|request|selected|engine|prompt|input|conversation|context)|this (?:model|request|organization|account)|model |no (?:conversation|session|thread|deferred|endpoints)|there(?:.{1,3}s| is) an issue|reached (?:max|the)|max(?:imum)? (?:turns|number|session|steps)|session|\d+-hour limit|(?:(?:weekly|daily|monthly|session|usage|opus|sonnet|api|premium|request) ){1,3}(?:limit|quota|allowance)|execution error|workspace|quota exceeded|codex|resource(?:_| has been )exhausted|retry|spend|billing|limit (?:reached|resets)|sorry|unexpected status|exceeded|litellm|(?:HTTP|status)\b|\S*API_KEY|environment variable|when using|login|sign in|resource)|^\W*[45]\d\d\b",
        ),
        rule(
            "agent-line.json",
            r#"^\W*\{?\s*"?(?:error|type|code|status|message)"?\s*:|"type":\s*"error"|"error":\s*\{|"message":\s*""#,
        ),
    ],
);

/// A build that fails does not build, whatever it says of its checks.
const NOT_BUILD: u8 = ANY & !BUILD;
/// What a linter finds keeps the compiler that it is part of from compiling.
const NOT_LINT: u8 = ANY & !LINT;

/// The name of the rule that knows a comparison of two values.
pub(in super::super) const COMPARED: &str = "summary.compared";

/// A value was not what a check wanted: the numbers in it are the check's.
pub(super) const ASSERTED: &[Rule] = &table(
    NOT_BUILD,
    FAILED,
    [
        rule(
            COMPARED,
            r#"(?i)\b(?:expected|wanted)\b:? (?:(?:the|a|an|http|response|status|code|value|result|exit|output|count|length|of|to|be|equal|return|is|was)[ :=]+){0,5}(?:[-+]?\d[\w.]*|true|false|null|none|nil|undefined|'[^']*'|`[^`]*`|"[^"]*")(?-i:(?: [A-Z][\w'-]*){0,3})[,;:.]? \W?(?:but |and |instead |it |the |response |server |api |status |code |was )*(?:got|received|found|actual|returned|returns|saw|was|gave|to (?:equal|be|eql?|match|have|contain|include|deep|strictly))\b|\bgot:? \W?(?:(?:http|status|code)[ :=]+){0,3}(?:[-+]?\d[\w.]*|'[^']*'|"[^"]*")(?-i:(?: [A-Z][\w'-]*){0,3})[,;:.]? \W?(?:but |and |instead of )?(?:want(?:ed)?|expected)\b|\b\d+ (?:!==?|(?:does not|did not|doesn't|didn't) (?:equal|match)) \d+\b"#,
        )
        .at(NOT_BUILD)
        .means(FAILED),
        rule(
            "summary.assertion",
            r"(?i)^\W*(?:(?:error|fail(?:ed|ure)?|tests? failed|uncaught|panicked|thread '[^']*' panicked)\b(?: at)?\W*)?(?:(?:\w+\.)*assert(?:ion)?(?:failed)?(?:error|exception|failure)\b\W*(?:\[\w+\]\W*)?(?:$|[:(\w])|assert(?:ion)?s?\b.{0,160}\bfail(?:ed|ure)\b|assertion fail(?:ed|ure)\b|assert \S+ (?:[=!]==?|is|in) \S+\W*$)",
        ),
    ],
);

/// The whole line.
pub(super) const WHOLE: &[Rule] = &table(
    ANY,
    TIMEOUT,
    [
        rule(
            "summary.timeout",
            r"(?i)^\W*(?:(?:error|fatal|failed|failure|reason|cause|\w*timeout\w*(?:error|exception|expired))\W+)?(?:(?:[\w./`'\x22-]+ ){0,4}timed[- ]?out|(?:(?:the|command|agent|tool|tests?|task|build|operation|job|step|process|script|session|run|execution|loop|hook|attempt|iteration|suite|lint|ci) ){0,3}(?:hard |overall |global )?(?:timeout(?: ?error|expired)?|(?:context )?deadline|time[- ]?limit)(?: of [\d.]+ ?\w+)?(?: (?:was |has been )?(?:exceeded|reached|expired|hit|passed|elapsed))?|(?:(?:the|command|agent|tool|tests?|task|build|operation|job|step|process|script|session|run|execution|loop|hook|attempt|iteration|suite) ){0,2}(?:exceeded|reached|hit) (?:its |the )?(?:timeout|time[- ]?limit|deadline))(?: (?:after|of|in|at) [\d.:]+ ?\w*)?\W*(?:\(.{0,40}\)\W*|\. For async tests.*)?$",
        ),
        rule(
            "summary.high-demand",
            r"(?i)^\W*(?:error\W+)?(?:selected )?model is (?:currently )?at capacity\b|^\W*(?:error\W+)?we(?:'|\xE2\x80\x99)?(?:re| are) (?:currently )?experiencing (?:\w+ )?(?:demand|load|traffic)\b",
        )
        .at(AGENT)
        .means(OVERLOADED),
        rule(
            "summary.memory",
            r"(?i)^\W*(?:error\W+|fatal\W+)?(?:(?:the |agent |build |node |process |test |tests |killed |by |was |worker )*)(?:oom(?:[- ]?killed)?|out[- ]of[- ]memory|memory exhausted)\W*$|^\W*(?:out of memory\W+)?killed process \d+\b.*(?:total-vm|out of memory)",
        )
        .means(OUT_OF_MEMORY),
        rule(
            "summary.signal",
            r"(?i)^\W*(?:error\W+|fatal\W+)?(?:[\w./-]+ ){0,3}?(?:(?:crashed|killed|terminated|died|exited|received|caught|aborted)\b.{0,24}|signal:? )?\bSIG(?:SEGV|ABRT|BUS|ILL|FPE|TRAP|SYS)\W*$|^\W*(?:error\W+)?(?:(?:the |agent |test |tests |build |process |program |compiler |runner |worker |node |binary |server )*)(?:has |have )?(?:crashed|segfault(?:ed)?|core dumped|segmentation fault)\W*$|^\W*(?:(?:error|fatal|runtime)\W+){0,3}stack overflow\W*$",
        )
        .means(CRASHED),
        rule(
            "summary.sigkill",
            r"(?i)^\W*(?:error\W+)?(?:(?:process|command|agent|was|killed|terminated|by|with|signal:?) )*SIGKILL\W*$",
        )
        .means(KILLED),
        rule(
            "summary.context",
            r"(?i)^\W*(?:error\W+)?(?:(?:the |agent |model |session |claude |codex |gemini )*(?:context|tokens?)(?: window| length| limit| budget)*(?: (?:was|is|has been|limit))? (?:exhausted|exceeded|full|overflow(?:ed)?|reached|used up)|(?:(?:the |agent |model |session )*(?:ran|is|was) |running )?out of (?:context|tokens)(?: window| space)?|(?:exceeded|exhausted|reached|hit) (?:the |its )?(?:maximum )?(?:context|token) (?:window|limit|length)|context overflow)\W*$",
        )
        .means(CONTEXT),
        rule(
            "summary.checks-failed",
            r"(?i)^\W*(?:error\W+|failed\W+)?(?:[\w./:@-]+ ){0,4}(?:tests?|specs?|suites?|verification|validations?|lint(?:s|ing|er)?|clippy|eslint|type[- ]?check(?:s|ing|er)?|checks?|assertions?|format(?:ting)?|pytest|jest|vitest|mypy|ruff) (?:(?:run|suite|step|check|checks|stage|phase|job|command|cases?|has|have|is|are) ){0,2}(?:fail(?:ed|ures?|s|ing)?|not passed|did not pass|broken|red)\W*$|^\W*failing (?:tests?|checks?|specs?)\W*$|^\W*(?:verification|tests?|lint|assertion|check) (?:failure|error)s?\W*$",
        )
        .at(NOT_BUILD)
        .means(FAILED),
        rule(
            "summary.build-failed",
            r"(?i)^\W*(?:error\W+|failed\W+)?(?:[\w./:@-]+ ){0,4}(?:(?:build|compil(?:e|ation|ing)|linking|bundling|transpilation|tsc|webpack) (?:(?:step|stage|phase|job|command|has|is) ){0,2}(?:fail(?:ed|ures?|s|ing)?|broken)|build(?: is)? broken|broken build|(?:compile|compiler|compilation|build|linker|syntax|type) errors?|(?:failed|fails|unable) to (?:compile|build|link)|(?:could not|couldn't|cannot|does not|doesn't) (?:compile|build|link)(?: [`'\x22]?\S+)?)(?: (?:in|at|on) \S+)?(?: \([^()]*\))?(?: due to [1-9]\d* previous errors?.*)?\W*$|^\W*(?:error\W+)?TS(?:[1-478]\d{3}|[12]\d{4})\W+\S.*$|^\W*fatal error: [\w./'+-]+\.(?:h|hh|hpp|hxx)\b'?(?::| file)? (?:no such file|not found)",
        )
        .at(NOT_LINT)
        .means(BROKEN),
        rule(
            "summary.input",
            r"(?i)^\W*(?:error\W+)?(?:invalid|bad|malformed|illegal) (?:user |tool |command[- ]line )?(?:input|arguments?|parameters?|options?|flags?|configuration)\W*$",
        )
        .at(FEEDBACK)
        .means(INVALID),
        rule(
            "summary.request",
            r"(?i)^\W*(?:error\W+)?(?:invalid|bad|malformed) (?:user |tool )?(?:input|arguments?|parameters?|request)\W*$",
        )
        .at(AGENT)
        .means(BAD_REQUEST),
        rule(
            "summary.not-there",
            r"(?i)^\W*(?:error\W+)?(?:(?:the|a|required|input|source|requested|config|configuration) )*(?:file|director(?:y|ies)|folder|path|resource|target) (?:was |is |does )?(?:not found|not exist|missing)\W*$|^\W*(?:error\W+)?no such (?:file or directory|file|directory|resource)\W*$",
        )
        .means(MISSING),
    ],
);

/// The start of a line that goes on about which or why: what it goes on with may say more.
pub(super) const HEAD: &[Rule] = &table(
    NOT_BUILD,
    FAILED,
    [
        rule(
            "summary.check-failed",
            r"(?i)^\W*(?:error\W+)?(?:[\w./:@-]+ ){0,4}(?:tests?|specs?|suites?|verification|lint(?:ing|er)?|clippy|eslint|type[- ]?check(?:ing|er)?|checks?|assertions?|pytest|jest|vitest|mypy|ruff) (?:(?:run|suite|step|check|checks|has|have|cases?) ){0,2}fail(?:ed|ures?|ing)?(?:\W*[:;,(\xE2-]|\.\s| (?:in|with|on|at|for|due|because|after)\b)",
        ),
        rule(
            "summary.findings",
            r"(?i)^\W*(?:cargo |npx |npm run )?(?:clippy|eslint|ruff|mypy|pyright|flake8|pylint|rubocop|golangci-lint|shellcheck|biome|prettier|stylelint|lint(?:er)?|type[- ]?check)\b\W+(?:found |reported |has |with )?[1-9]\d* (?:\w+ ){0,2}(?:warnings?|errors?|issues?|problems?|violations?|findings?|offenses?)\b",
        ),
        rule(
            "summary.build",
            r"(?i)^\W*(?:error\W+)?(?:[\w./:@-]+ ){0,4}(?:(?:build|compil(?:e|ation)|linking|bundling) (?:(?:step|has) )?fail(?:ed|ure)|(?:compile|compiler|compilation|build|linker) errors?)(?:\W*[:;,(\xE2-]|\.\s| (?:in|with|on|at|for|due|because|after)\b)",
        )
        .at(NOT_LINT)
        .means(BROKEN),
    ],
);
