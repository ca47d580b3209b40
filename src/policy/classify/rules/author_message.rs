//! What a loop's author says in one line, where nothing else is said: the name of what happened, hardly more.
//!
//! Such a line is no log: it names the failure as a whole, so that its words count more than they would among others.
//! Every pattern takes the line as a whole, for a word of failure alone is in many a harmless line.

use super::rule::{AGENT, ANY, BUILD, LINT, Rule, TEST, TYPECHECK, rule};
use crate::policy::classify::verdict::{
    BAD_REQUEST, BROKEN, CONTEXT, CRASHED, FAILED, INVALID, KILLED, MISSING, OUT_OF_MEMORY,
    OVERLOADED, TIMEOUT,
};

const FEEDBACK: u8 = BUILD | TEST | LINT | TYPECHECK;
/// A build that fails does not build, whatever it says of its checks.
const NOT_BUILD: u8 = ANY & !BUILD;
/// What a linter finds keeps the compiler that it is part of from compiling.
const NOT_LINT: u8 = ANY & !LINT;

/// The name of the rule that knows a comparison of two values.
pub(in super::super) const COMPARED: &str = "summary.compared";

/// A value was not what a check wanted: the numbers in it are the check's.
pub(super) const ASSERTED: &[Rule] = &[
    rule(
        COMPARED,
        NOT_BUILD,
        r#"(?i)\b(?:expected|wanted)\b:? (?:(?:the|a|an|http|response|status|code|value|result|exit|output|count|length|of|to|be|equal|return|is|was)[ :=]+){0,5}(?:[-+]?\d[\w.]*|true|false|null|none|nil|undefined|'[^']*'|`[^`]*`|"[^"]*")(?-i:(?: [A-Z][\w'-]*){0,3})[,;:.]? \W?(?:but |and |instead |it |the |response |server |api |status |code |was )*(?:got|received|found|actual|returned|returns|saw|was|gave|to (?:equal|be|eql?|match|have|contain|include|deep|strictly))\b|\bgot:? \W?(?:(?:http|status|code)[ :=]+){0,3}(?:[-+]?\d[\w.]*|'[^']*'|"[^"]*")(?-i:(?: [A-Z][\w'-]*){0,3})[,;:.]? \W?(?:but |and |instead of )?(?:want(?:ed)?|expected)\b|\b\d+ (?:!==?|(?:does not|did not|doesn't|didn't) (?:equal|match)) \d+\b"#,
        FAILED,
    ),
    rule(
        "summary.assertion",
        NOT_BUILD,
        r"(?i)^\W*(?:(?:error|fail(?:ed|ure)?|tests? failed|uncaught|panicked|thread '[^']*' panicked)\b(?: at)?\W*)?(?:(?:\w+\.)*assert(?:ion)?(?:failed)?(?:error|exception|failure)\b\W*(?:\[\w+\]\W*)?(?:$|[:(\w])|assert(?:ion)?s?\b.{0,160}\bfail(?:ed|ure)\b|assertion fail(?:ed|ure)\b|assert \S+ (?:[=!]==?|is|in) \S+\W*$)",
        FAILED,
    ),
];

/// The whole line.
pub(super) const WHOLE: &[Rule] = &[
    rule(
        "summary.timeout",
        ANY,
        r"(?i)^\W*(?:(?:error|fatal|failed|failure|reason|cause|\w*timeout\w*(?:error|exception|expired))\W+)?(?:(?:[\w./`'\x22-]+ ){0,4}timed[- ]?out|(?:(?:the|command|agent|tool|tests?|task|build|operation|job|step|process|script|session|run|execution|loop|hook|attempt|iteration|suite|lint|ci) ){0,3}(?:hard |overall |global )?(?:timeout(?: ?error|expired)?|(?:context )?deadline|time[- ]?limit)(?: of [\d.]+ ?\w+)?(?: (?:was |has been )?(?:exceeded|reached|expired|hit|passed|elapsed))?|(?:(?:the|command|agent|tool|tests?|task|build|operation|job|step|process|script|session|run|execution|loop|hook|attempt|iteration|suite) ){0,2}(?:exceeded|reached|hit) (?:its |the )?(?:timeout|time[- ]?limit|deadline))(?: (?:after|of|in|at) [\d.:]+ ?\w*)?\W*(?:\(.{0,40}\)\W*|\. For async tests.*)?$",
        TIMEOUT,
    ),
    rule(
        "summary.high-demand",
        AGENT,
        r"(?i)^\W*(?:error\W+)?(?:selected )?model is (?:currently )?at capacity\b|^\W*(?:error\W+)?we(?:'|\xE2\x80\x99)?(?:re| are) (?:currently )?experiencing (?:\w+ )?(?:demand|load|traffic)\b",
        OVERLOADED,
    ),
    rule(
        "summary.memory",
        ANY,
        r"(?i)^\W*(?:error\W+|fatal\W+)?(?:(?:the |agent |build |node |process |test |tests |killed |by |was |worker )*)(?:oom(?:[- ]?killed)?|out[- ]of[- ]memory|memory exhausted)\W*$|^\W*(?:out of memory\W+)?killed process \d+\b.*(?:total-vm|out of memory)",
        OUT_OF_MEMORY,
    ),
    rule(
        "summary.signal",
        ANY,
        r"(?i)^\W*(?:error\W+|fatal\W+)?(?:[\w./-]+ ){0,3}?(?:(?:crashed|killed|terminated|died|exited|received|caught|aborted)\b.{0,24}|signal:? )?\bSIG(?:SEGV|ABRT|BUS|ILL|FPE|TRAP|SYS)\W*$|^\W*(?:error\W+)?(?:(?:the |agent |test |tests |build |process |program |compiler |runner |worker |node |binary |server )*)(?:has |have )?(?:crashed|segfault(?:ed)?|core dumped|segmentation fault)\W*$|^\W*(?:(?:error|fatal|runtime)\W+){0,3}stack overflow\W*$",
        CRASHED,
    ),
    rule(
        "summary.sigkill",
        ANY,
        r"(?i)^\W*(?:error\W+)?(?:(?:process|command|agent|was|killed|terminated|by|with|signal:?) )*SIGKILL\W*$",
        KILLED,
    ),
    rule(
        "summary.context",
        ANY,
        r"(?i)^\W*(?:error\W+)?(?:(?:the |agent |model |session |claude |codex |gemini )*(?:context|tokens?)(?: window| length| limit| budget)*(?: (?:was|is|has been|limit))? (?:exhausted|exceeded|full|overflow(?:ed)?|reached|used up)|(?:(?:the |agent |model |session )*(?:ran|is|was) |running )?out of (?:context|tokens)(?: window| space)?|(?:exceeded|exhausted|reached|hit) (?:the |its )?(?:maximum )?(?:context|token) (?:window|limit|length)|context overflow)\W*$",
        CONTEXT,
    ),
    rule(
        "summary.checks-failed",
        NOT_BUILD,
        r"(?i)^\W*(?:error\W+|failed\W+)?(?:[\w./:@-]+ ){0,4}(?:tests?|specs?|suites?|verification|validations?|lint(?:s|ing|er)?|clippy|eslint|type[- ]?check(?:s|ing|er)?|checks?|assertions?|format(?:ting)?|pytest|jest|vitest|mypy|ruff) (?:(?:run|suite|step|check|checks|stage|phase|job|command|cases?|has|have|is|are) ){0,2}(?:fail(?:ed|ures?|s|ing)?|not passed|did not pass|broken|red)\W*$|^\W*failing (?:tests?|checks?|specs?)\W*$|^\W*(?:verification|tests?|lint|assertion|check) (?:failure|error)s?\W*$",
        FAILED,
    ),
    rule(
        "summary.build-failed",
        NOT_LINT,
        r"(?i)^\W*(?:error\W+|failed\W+)?(?:[\w./:@-]+ ){0,4}(?:(?:build|compil(?:e|ation|ing)|linking|bundling|transpilation|tsc|webpack) (?:(?:step|stage|phase|job|command|has|is) ){0,2}(?:fail(?:ed|ures?|s|ing)?|broken)|build(?: is)? broken|broken build|(?:compile|compiler|compilation|build|linker|syntax|type) errors?|(?:failed|fails|unable) to (?:compile|build|link)|(?:could not|couldn't|cannot|does not|doesn't) (?:compile|build|link)(?: [`'\x22]?\S+)?)(?: (?:in|at|on) \S+)?(?: \([^()]*\))?(?: due to [1-9]\d* previous errors?.*)?\W*$|^\W*(?:error\W+)?TS(?:[1-478]\d{3}|[12]\d{4})\W+\S.*$|^\W*fatal error: [\w./'+-]+\.(?:h|hh|hpp|hxx)\b'?(?::| file)? (?:no such file|not found)",
        BROKEN,
    ),
    rule(
        "summary.input",
        FEEDBACK,
        r"(?i)^\W*(?:error\W+)?(?:invalid|bad|malformed|illegal) (?:user |tool |command[- ]line )?(?:input|arguments?|parameters?|options?|flags?|configuration)\W*$",
        INVALID,
    ),
    rule(
        "summary.request",
        AGENT,
        r"(?i)^\W*(?:error\W+)?(?:invalid|bad|malformed) (?:user |tool )?(?:input|arguments?|parameters?|request)\W*$",
        BAD_REQUEST,
    ),
    rule(
        "summary.not-there",
        ANY,
        r"(?i)^\W*(?:error\W+)?(?:(?:the|a|required|input|source|requested|config|configuration) )*(?:file|director(?:y|ies)|folder|path|resource|target) (?:was |is |does )?(?:not found|not exist|missing)\W*$|^\W*(?:error\W+)?no such (?:file or directory|file|directory|resource)\W*$",
        MISSING,
    ),
];

/// The start of a line that goes on about which or why: what it goes on with may say more.
pub(super) const HEAD: &[Rule] = &[
    rule(
        "summary.check-failed",
        NOT_BUILD,
        r"(?i)^\W*(?:error\W+)?(?:[\w./:@-]+ ){0,4}(?:tests?|specs?|suites?|verification|lint(?:ing|er)?|clippy|eslint|type[- ]?check(?:ing|er)?|checks?|assertions?|pytest|jest|vitest|mypy|ruff) (?:(?:run|suite|step|check|checks|has|have|cases?) ){0,2}fail(?:ed|ures?|ing)?(?:\W*[:;,(\xE2-]|\.\s| (?:in|with|on|at|for|due|because|after)\b)",
        FAILED,
    ),
    rule(
        "summary.findings",
        NOT_BUILD,
        r"(?i)^\W*(?:cargo |npx |npm run )?(?:clippy|eslint|ruff|mypy|pyright|flake8|pylint|rubocop|golangci-lint|shellcheck|biome|prettier|stylelint|lint(?:er)?|type[- ]?check)\b\W+(?:found |reported |has |with )?[1-9]\d* (?:\w+ ){0,2}(?:warnings?|errors?|issues?|problems?|violations?|findings?|offenses?)\b",
        FAILED,
    ),
    rule(
        "summary.build",
        NOT_LINT,
        r"(?i)^\W*(?:error\W+)?(?:[\w./:@-]+ ){0,4}(?:(?:build|compil(?:e|ation)|linking|bundling) (?:(?:step|has) )?fail(?:ed|ure)|(?:compile|compiler|compilation|build|linker) errors?)(?:\W*[:;,(\xE2-]|\.\s| (?:in|with|on|at|for|due|because|after)\b)",
        BROKEN,
    ),
];
