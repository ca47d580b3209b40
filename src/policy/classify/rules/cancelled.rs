//! Words of programs that somebody interrupted.

use super::rule::{ANY, BUILD, LINT, Rule, TEST, TYPECHECK, rule};
use crate::policy::classify::verdict::CANCELLED;

const FEEDBACK: u8 = BUILD | TEST | LINT | TYPECHECK;

pub(super) const RULES: &[Rule] = &[
    rule(
        "cancel.python",
        ANY,
        r"^(?:!+ )?(?:_pytest\.outcomes\.Exit: )?KeyboardInterrupt\b(?: !+)?[:\s]*$|: KeyboardInterrupt$",
        CANCELLED,
    ),
    rule(
        "cancel.make",
        ANY,
        r"^\S*make(?:\[\d+\])?: \*\*\* (?:\[.*\] )?(?:Interrupt|Terminated|Hangup|Beendet|Unterbrechung|Interrompu|Complété|Interrumpido|Terminado)",
        CANCELLED,
    ),
    rule(
        "cancel.signal-word",
        ANY,
        r"(?i)\b(?:received|got|caught|on|due to|with|by) (?:an? )?(?:signal )?(?:2 |15 )?\(?(?:SIGINT|SIGTERM|SIGHUP|interrupt signal|termination signal|ctrl[-+]c)\b|\bSIG(?:INT|TERM|HUP)\b(?: signal)?(?:,| -)? (?:was |has been )?(?:received|caught|arrived|detected)\b|\b(?:interrupt|termination|terminate|kill|stop|shutdown) (?:signal )?(?:was |has been )?received\b|\b(?:shutting down|stopping|exiting|quitting|terminating|aborting) (?:gracefully )?(?:on|due to|because of|after) (?:an? |the )?(?:signal (?:2|15)\b|SIG(?:INT|TERM|HUP)\b|interrupt\b|ctrl)",
        CANCELLED,
    ),
    rule(
        "cancel.child-signal",
        ANY,
        r"\(?signal: (?:2, SIGINT|15, SIGTERM|1, SIGHUP|interrupt|terminated|hangup)\b",
        CANCELLED,
    ),
    rule(
        "cancel.npm",
        ANY,
        r"^npm (?:error|ERR!) signal SIG(?:INT|TERM)|[Cc]ommand failed with signal .?SIG(?:INT|TERM)|\bELIFECYCLE\b.*\bSIG(?:INT|TERM)",
        CANCELLED,
    ),
    rule(
        "cancel.by-user",
        ANY,
        r"(?i)\b(?:interrupt(?:ed)?|cancel(?:l?ed)?|abort(?:ed|ing)?|stopped|terminated|killed)\b.{0,12} (?:by|from|on) (?:the )?(?:user|operator|keyboard|request|ctrl|signal(?: (?:2|15|1|(?:SIG)?(?:INT|TERM|HUP))\b|[.!)]*$))",
        CANCELLED,
    ),
    rule(
        "cancel.user-did",
        ANY,
        r"(?i)\buser (?:has )?(?:aborted|cancell?ed|interrupted|requested (?:cancel|abort|shutdown|stop))|\b(?:cancel(?:l?ation)?|interrupt(?:ion)?|termination|shutdown) (?:was )?requested\b|Request interrupted",
        CANCELLED,
    ),
    rule(
        "cancel.keyboard",
        ANY,
        r"^\s*(?:\^C\s*)+$|\bCtrl[-+]C (?:pressed|received|detected)|^\W*(?:error: )?(?i:keyboard interrupt)\b",
        CANCELLED,
    ),
    // What command-line libraries print of an interrupt, and nothing else.
    rule(
        "cancel.library",
        FEEDBACK,
        r"^\W*Aborted!$|^Gracefully stopping\.\.\. \(press Ctrl\+C",
        CANCELLED,
    ),
    rule(
        "cancel.shutdown",
        FEEDBACK,
        r"\b(?:[A-Z]\w+|server|build) (?:server |daemon )?is shutting down",
        CANCELLED,
    ),
    rule(
        "cancel.nextest",
        FEEDBACK,
        r"^\s*(?:Canceling|Cancelling) due to (?:interrupt|signal|termination)|^\s*(?:SIGINT|SIGTERM) \[",
        CANCELLED,
    ),
    rule(
        "cancel.bazel",
        FEEDBACK,
        r"(?i)\bbuild (?:was )?(?:interrupted|cancell?ed)\b|Caught interrupt signal|command interrupted",
        CANCELLED,
    ),
    rule(
        "cancel.gradle",
        FEEDBACK,
        r"^\W*Build cancelled|> Build cancelled",
        CANCELLED,
    ),
    rule(
        "cancel.node",
        FEEDBACK,
        r"^\W*(?:Interrupted|SIGINT|Aborted by Ctrl-C|Cancell?ed)[.!]?\s*$|'The test was cancelled due to .*interrupt|Interrupted while running",
        CANCELLED,
    ),
    rule(
        "cancel.ninja",
        FEEDBACK,
        r"^ninja: build stopped: interrupted",
        CANCELLED,
    ),
    rule(
        "cancel.ruby",
        FEEDBACK,
        r"^\S*: Interrupt$|\bInterrupt(?: \(Interrupt\))?$|^Interrupt:",
        CANCELLED,
    ),
    rule(
        "cancel.shell",
        ANY,
        r"^(?:\S+: )?(?:line \d+: +\d+ )(?:Terminated|Interrupt|Hangup|Beendet)\b|^Terminated$|^Session terminated",
        CANCELLED,
    ),
    rule(
        "cancel.maven",
        FEEDBACK,
        r"InterruptedException$|The build was cancell?ed",
        CANCELLED,
    ),
    rule(
        "cancel.generic",
        ANY,
        r"(?i)^\W*(?:error: |fatal: )?(?:operation|request|run|execution|task|job|prompt|session|conversation|process)(?: was| has been)? (?:cancell?ed|interrupted|aborted)(?: by .*)?[.!]*$|^\W*(?:test run|tests?)(?: was| has been)? (?:cancell?ed|interrupted)[.!]*$",
        CANCELLED,
    ),
];
