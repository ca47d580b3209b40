//! Processes that died, and programs that were interrupted.

use super::{ANY, CANCELLED, CRASHED, FEEDBACK, KILLED, OUT_OF_MEMORY, Rule, rule};

/// Memory ran out, whoever noticed.
pub(super) const MEMORY: &[Rule] = &[
    rule(
        "memory.kernel",
        ANY,
        r"(?i)\bout of memory: killed process|\bkilled process \d+ \([^)]*\),? .{0,24}total-vm|\boom[- ]kill(?:er|ed|s)?\b|\boom_kill(?:er|ed|[ :=]+[1-9]\d*)\b|\bOOMKilled\b|memory cgroup out of memory|invoked oom-killer|killed by (?:the )?oom",
        OUT_OF_MEMORY,
    ),
    rule(
        "memory.compiler-killed",
        ANY,
        r"Killed signal terminated program|internal compiler error: Killed|ld terminated with signal 9|clang: error: .*(?:Killed|signal 9)",
        OUT_OF_MEMORY,
    ),
    rule(
        "memory.javascript",
        ANY,
        r"JavaScript heap out of memory|Reached heap limit|ERR_WORKER_OUT_OF_MEMORY|Worker terminated due to reaching memory limit|Fatal process (?:OOM|out of memory)|RangeError: Array buffer allocation failed",
        OUT_OF_MEMORY,
    ),
    rule(
        "memory.java",
        ANY,
        r"java\.lang\.OutOfMemoryError|insufficient memory for the Java Runtime|Could not reserve enough space for|GC overhead limit exceeded|Not enough memory to (?:run|allocate)|Expiring Daemon because JVM heap space is exhausted",
        OUT_OF_MEMORY,
    ),
    rule(
        "memory.python",
        ANY,
        r"^(?:E\s+)?(?:[\w.]+\.)?_?\w*MemoryError\b(?::.*)?$|^INTERNALERROR> MemoryError",
        OUT_OF_MEMORY,
    ),
    rule(
        "memory.cpp",
        ANY,
        r"std::bad_alloc|(?i)\bvirtual memory exhausted|memory exhausted$|out of memory allocating \d+",
        OUT_OF_MEMORY,
    ),
    rule(
        "memory.rust",
        ANY,
        r"^memory allocation of \d+ bytes failed|(?i)LLVM ERROR: out of memory|rustc-LLVM ERROR: out of memory",
        OUT_OF_MEMORY,
    ),
    rule(
        "memory.go",
        ANY,
        r"fatal error: (?:runtime: )?(?:out of memory|cannot allocate memory)|^runtime: out of memory",
        OUT_OF_MEMORY,
    ),
    rule(
        "memory.php",
        ANY,
        r"Allowed memory size of \d+ bytes exhausted|^PHP .*Out of memory",
        OUT_OF_MEMORY,
    ),
    rule(
        "memory.ruby",
        ANY,
        r"NoMemoryError|failed to allocate memory",
        OUT_OF_MEMORY,
    ),
    rule(
        "memory.dotnet",
        ANY,
        r"System\.OutOfMemoryException|^Out of memory\.$",
        OUT_OF_MEMORY,
    ),
    rule(
        "memory.haskell",
        ANY,
        r"(?i)^\S*:?\s*(?:heap (?:exhausted|overflow)|memory allocation failed)",
        OUT_OF_MEMORY,
    ),
    rule(
        "memory.enomem",
        ANY,
        r"(?:^|: |\()Cannot allocate memory\b|\bENOMEM\b|\(os error 12\)|\[Errno 12\]|Nicht genügend Hauptspeicher|Impossible d'allouer (?:de )?la mémoire|No se pudo asignar memoria|Kann Speicher nicht allozieren",
        OUT_OF_MEMORY,
    ),
    rule(
        "memory.limit",
        ANY,
        r"(?i)^\W*(?:fatal|error|fatal error|panic)?\W{0,3}(?:out of memory|not enough memory|memory limit (?:of .* )?exceeded|insufficient memory)\b",
        OUT_OF_MEMORY,
    ),
    rule(
        "memory.tool",
        FEEDBACK,
        r"(?i)\b(?:cannot allocate vector of size|eheap_alloc: cannot allocate|CUDA out of memory|terminated .*out[- ]of[- ]memory|r[au]n out of memory|exceeded (?:the )?memory limit|out of memory!|: not enough memory\b|: heap (?:limit exceeded|(?:space )?exhausted))",
        OUT_OF_MEMORY,
    ),
];

/// A process died from a signal.
pub(super) const DIED: &[Rule] = &[
    rule(
        "crash.native",
        ANY,
        r"\(signal: \d+, SIG(?:SEGV|ABRT|BUS|ILL|FPE|TRAP|SYS)\b|^\W*signal: SIG(?:SEGV|ABRT|BUS|ILL|FPE|TRAP|SYS)\W*$|signal: (?:segmentation fault|aborted|abort trap|bus error|illegal instruction|floating point exception|trace/breakpoint trap)",
        CRASHED,
    ),
    rule(
        "crash.nextest",
        FEEDBACK,
        r"^\s*(?:TRY \d+ )?SIG(?:SEGV|ABRT|BUS|ILL|FPE|TRAP|KILL) \[",
        CRASHED,
    ),
    rule(
        "crash.make",
        ANY,
        r"^\S*make(?:\[\d+\])?: \*\*\* \[.*\] (?:Segmentation fault|Aborted|Bus error|Illegal instruction|Floating point exception|Trace/breakpoint trap|Speicherzugriffsfehler|Abgebrochen|Erreur de segmentation|Abandon|Violación de segmento|Abortado|Error 13[234569])",
        CRASHED,
    ),
    rule(
        "crash.make-killed",
        ANY,
        r"^\S*make(?:\[\d+\])?: \*\*\* \[.*\] (?:Killed|Getötet|Processus arrêté|Tué|Terminado \(killed\)|Error 137)",
        KILLED,
    ),
    rule(
        "crash.ninja",
        FEEDBACK,
        r"^ninja: .*subcommand (?:failed|crashed).*signal|^(?:Segmentation fault|Bus error|Illegal instruction)(?:\W*$| ?\(|: \d| at | in )|^Speicherzugriffsfehler|^Erreur de segmentation|^Aborted(?: \(core dumped\))?$",
        CRASHED,
    ),
    rule(
        "crash.shell",
        ANY,
        r"(?:: line \d+:|\[\d+\]|^\S+: \d+:)\s+(?:\d+\s+)?(?:Segmentation fault|Aborted|Bus error|Illegal instruction|Floating point exception|Trace/breakpoint trap|Speicherzugriffsfehler|Erreur de segmentation|Violación de segmento)",
        CRASHED,
    ),
    rule(
        "crash.core-dumped",
        ANY,
        r"\(core dumped\)|\(Speicherabzug geschrieben\)|\(core dumped\s|\(`core' generado\)",
        CRASHED,
    ),
    rule(
        "crash.shell-killed",
        ANY,
        r"(?:: line \d+:|^\S+: \d+:)\s+(?:\d+\s+)?(?:Killed|Getötet|Processus arrêté|Terminado)\b|^Killed(?:: 9)?$|^\[\d+\]\S*\s+Killed",
        KILLED,
    ),
    rule(
        "crash.child-killed",
        ANY,
        r"\b[Ss]ignal: (?:9, SIGKILL|killed|KILL|SIGKILL)\b|(?i:terminated|killed|exited|failed|died|ended)\b.{0,40}\b(?:SIGKILL|signal[ =:]*9\b)|signal=SIGKILL",
        KILLED,
    ),
    rule(
        "crash.child-signal",
        ANY,
        r"(?i:terminated|killed|exited|failed|died|ended|aborted|crashed|received|caught)\b.{0,60}(?:\bSIG(?:SEGV|ABRT|BUS|ILL|FPE|TRAP|SYS)\b|\bsignal(?: code)?[ =:]*(?:11|6|7|4|8|5|10)\b)",
        CRASHED,
    ),
    rule(
        "crash.npm",
        ANY,
        r"^npm (?:error|ERR!) signal SIG(?:SEGV|ABRT|BUS|ILL|FPE|TRAP)|[Cc]ommand failed with signal .?SIG(?:SEGV|ABRT|BUS|ILL|FPE|TRAP)",
        CRASHED,
    ),
    rule(
        "crash.npm-killed",
        ANY,
        r"^npm (?:error|ERR!) signal SIGKILL|[Cc]ommand failed with signal .?SIGKILL",
        KILLED,
    ),
    rule(
        "crash.status-killed",
        ANY,
        r"(?i:exit(?:ed)?(?: with)?(?: a)?(?: non-zero)?(?: exit)?(?: status| code| value)?|ELIFECYCLE|Command failed with exit code)[ :=]*\(?(?:137|-9)\b",
        KILLED,
    ),
    rule(
        "crash.status",
        ANY,
        r"(?i:exit(?:ed)?(?: with)?(?: a)?(?: non-zero)?(?: exit)?(?: status| code| value)?|ELIFECYCLE|Command failed with exit code)[ :=]*\(?(?:139|134|135|136|132|-11|-6)\b",
        CRASHED,
    ),
    rule(
        "crash.python",
        ANY,
        r"^Fatal Python error: |Windows fatal exception",
        CRASHED,
    ),
    // A harness that names the signal of a wait status.
    rule(
        "crash.wait-status",
        FEEDBACK,
        r"\b[Ss]ignal: (?:SEGV|ABRT|BUS|ILL|FPE|TRAP|SYS)\b|\(Signal: (?:SIG)?(?:SEGV|ABRT|BUS|ILL|FPE|TRAP|SYS)\b",
        CRASHED,
    ),
    rule(
        "crash.harness",
        FEEDBACK,
        r"^\W*(?:\S+ )*Unexpected signal caught\b|\bCrash(?:ing|ed|es): *[1-9]",
        CRASHED,
    ),
    rule(
        "crash.xdist",
        FEEDBACK,
        r"worker '?gw\d+'? crashed|node down: Not properly terminated",
        CRASHED,
    ),
    rule(
        "crash.stack",
        ANY,
        r"has overflowed its stack|^fatal error: stack overflow|goroutine stack exceeds \d+-byte limit|^(?:fatal runtime error: )?stack overflow, aborting|^Stack overflow\.$|stack overflow \(native\)|\bSTORAGE_ERROR\b.*(?:stack overflow|erroneous memory)|^Fatal error: exception (?:Stdlib\.)?Stack_overflow|(?i)^(?:\S+: )?(?:internal |fatal )?(?:runtime )?(?:error: )?stack (?:space )?overflow(?: detected)?\b(?: \(e\.g|[.!:,]|$)|Process is terminated due to StackOverflow|\bEStackOverflow\b|^Runtime error 202\b",
        CRASHED,
    ),
    // Access to memory that is not there, in words of runtimes that catch the signal.
    rule(
        "crash.memory-access",
        ANY,
        r"^SIGSEGV: Illegal storage access|^Invalid memory access \(signal \d+\)|\bEAccessViolation\b|^Runtime error 216\b|EXCEPTION_ACCESS_VIOLATION|^(?:raised )?PROGRAM_ERROR : .*erroneous memory|^\[\d+\] signal \(\d+(?:\.\d+)?\): (?:Segmentation|Abort|Bus|Illegal)|^Segmentation fault at address|\*\*\* caught (?:segfault|bus error|illegal operation) \*\*\*",
        CRASHED,
    ),
    rule(
        "crash.jvm",
        ANY,
        r"A fatal error has been detected by the Java Runtime|The forked VM terminated without|The crash happened|Crashed tests:|daemon disappeared unexpectedly|Gradle Test Executor \d+' finished with non-zero exit value 1[34]",
        CRASHED,
    ),
    rule(
        "crash.ctest",
        FEEDBACK,
        r"\*\*\*Exception: (?:SegFault|Child aborted|Illegal|Bus error|Numerical|Other)|Subprocess (?:aborted|killed)\*\*\*|\((?:SEGFAULT|Subprocess aborted|ILLEGAL|BUS_ERROR|NUMERICAL)\)\s*$",
        CRASHED,
    ),
    rule(
        "crash.meson",
        FEEDBACK,
        r"killed by signal (?:11|6|7|4|8|9)\b",
        CRASHED,
    ),
    rule(
        "crash.worker",
        FEEDBACK,
        r"(?i)(?:jest |test )worker (?:process )?.*(?:was terminated by another process|crashed)|\[vitest-pool\].*(?:Worker|terminated)|Worker (?:forks )?exited unexpectedly|^\W*Error: Channel closed|Tinypool.*(?:terminated|exited)",
        CRASHED,
    ),
    rule(
        "crash.dotnet",
        FEEDBACK,
        r"(?i)test host process crashed|The active test run was aborted|Fatal error\. (?:System\.)?(?:AccessViolation|Internal CLR)",
        CRASHED,
    ),
    rule(
        "crash.compiler",
        FEEDBACK,
        r"internal compiler error: (?:Segmentation fault|Aborted|Illegal|Bus error)|unable to execute command: (?:Segmentation fault|Aborted|Killed)|frontend command failed due to signal|rustc interrupted by SIG|compiler crashed with|error: compile command failed due to signal",
        CRASHED,
    ),
    rule(
        "crash.ruby",
        ANY,
        r"\[BUG\] (?:Segmentation fault|Illegal|Bus Error|Stack)",
        CRASHED,
    ),
    rule(
        "crash.v8",
        ANY,
        r"^#\s*Fatal error in|^FATAL ERROR: (?:v8|node)::",
        CRASHED,
    ),
    rule(
        "crash.sanitizer",
        ANY,
        r"Sanitizer:DEADLYSIGNAL|^==\d+==ABORTING|^==\d+==ERROR: (?:(?:HW)?Address|Memory)Sanitizer: ",
        CRASHED,
    ),
    rule(
        "crash.abort-words",
        ANY,
        r"^\*\*\* (?:stack smashing detected|buffer overflow detected) \*\*\*|^(?:double free or corruption|free\(\): invalid|malloc\(\): |corrupted size vs|munmap_chunk\(\))|^terminate called (?:after throwing|without an active)",
        CRASHED,
    ),
    rule(
        "crash.swift",
        FEEDBACK,
        r"Exited with (?:unexpected )?signal code \d+|Crash: \S+ at |^Fatal error: .*: file .*, line \d+$",
        CRASHED,
    ),
    rule(
        "crash.bun",
        ANY,
        r"^panic\(main thread\): |oh no: Bun has crashed|Deno has panicked",
        CRASHED,
    ),
    rule(
        "crash.segfault-word",
        FEEDBACK,
        r"(?i)^\W*(?:error: |fatal: |fatal error: )?(?:segmentation fault|segfault)(?:\W*$|\W*\(|[:,.!;]| at\b| in\b| while\b)|: (?:Segmentation fault|Bus error|Illegal instruction|Aborted)(?: +\(core dumped\))?$",
        CRASHED,
    ),
];

pub(super) const INTERRUPTED: &[Rule] = &[
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
