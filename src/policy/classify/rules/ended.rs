//! Processes that died, and programs that were interrupted.

use super::{ANY, CANCELLED, CRASHED, FEEDBACK, KILLED, OUT_OF_MEMORY, Rule, rule, table};

/// Memory ran out, whoever noticed.
pub(super) const MEMORY: &[Rule] = &table(
    ANY,
    OUT_OF_MEMORY,
    [
        rule(
            "memory.kernel",
            r"(?i)\bout of memory: killed process|\bkilled process \d+ \([^)]*\),? .{0,24}total-vm|\boom[- ]kill(?:er|ed|s)?\b|\boom_kill(?:er|ed|[ :=]+[1-9]\d*)\b|\bOOMKilled\b|memory cgroup out of memory|invoked oom-killer|killed by (?:the )?oom",
        ),
        rule(
            "memory.compiler-killed",
            r"Killed signal terminated program|internal compiler error: Killed|ld terminated with signal 9|clang: error: .*(?:Killed|signal 9)",
        ),
        rule(
            "memory.javascript",
            r"JavaScript heap out of memory|Reached heap limit|ERR_WORKER_OUT_OF_MEMORY|Worker terminated due to reaching memory limit|Fatal process (?:OOM|out of memory)|RangeError: Array buffer allocation failed",
        ),
        rule(
            "memory.java",
            r"java\.lang\.OutOfMemoryError|insufficient memory for the Java Runtime|Could not reserve enough space for|GC overhead limit exceeded|Not enough memory to (?:run|allocate)|Expiring Daemon because JVM heap space is exhausted",
        ),
        rule(
            "memory.python",
            r"^(?:E\s+)?(?:[\w.]+\.)?_?\w*MemoryError\b(?::.*)?$|^INTERNALERROR> MemoryError",
        ),
        rule(
            "memory.cpp",
            r"std::bad_alloc|(?i)\bvirtual memory exhausted|memory exhausted$|out of memory allocating \d+",
        ),
        rule(
            "memory.rust",
            r"^memory allocation of \d+ bytes failed|(?i)LLVM ERROR: out of memory|rustc-LLVM ERROR: out of memory",
        ),
        rule(
            "memory.go",
            r"fatal error: (?:runtime: )?(?:out of memory|cannot allocate memory)|^runtime: out of memory",
        ),
        rule("memory.php", r"Allowed memory size of \d+ bytes exhausted|^PHP .*Out of memory"),
        rule("memory.ruby", r"NoMemoryError|failed to allocate memory"),
        rule("memory.dotnet", r"System\.OutOfMemoryException|^Out of memory\.$"),
        rule(
            "memory.haskell",
            r"(?i)^\S*:?\s*(?:heap (?:exhausted|overflow)|memory allocation failed)",
        ),
        rule(
            "memory.enomem",
            r"(?:^|: |\()Cannot allocate memory\b|\bENOMEM\b|\(os error 12\)|\[Errno 12\]|Nicht genügend Hauptspeicher|Impossible d'allouer (?:de )?la mémoire|No se pudo asignar memoria|Kann Speicher nicht allozieren",
        ),
        rule(
            "memory.limit",
            r"(?i)^\W*(?:fatal|error|fatal error|panic)?\W{0,3}(?:out of memory|not enough memory|memory limit (?:of .* )?exceeded|insufficient memory)\b",
        ),
        rule(
            "memory.tool",
            r"(?i)\b(?:cannot allocate vector of size|eheap_alloc: cannot allocate|CUDA out of memory|terminated .*out[- ]of[- ]memory|r[au]n out of memory|exceeded (?:the )?memory limit|out of memory!|: not enough memory\b|: heap (?:limit exceeded|(?:space )?exhausted))",
        )
        .at(FEEDBACK),
    ],
);

/// A process died from a signal.
pub(super) const DIED: &[Rule] = &table(
    ANY,
    CRASHED,
    [
        rule(
            "crash.native",
            r"\(signal: \d+, SIG(?:SEGV|ABRT|BUS|ILL|FPE|TRAP|SYS)\b|^\W*signal: SIG(?:SEGV|ABRT|BUS|ILL|FPE|TRAP|SYS)\W*$|signal: (?:segmentation fault|aborted|abort trap|bus error|illegal instruction|floating point exception|trace/breakpoint trap)",
        ),
        rule(
            "crash.nextest",
            r"^\s*(?:TRY \d+ )?SIG(?:SEGV|ABRT|BUS|ILL|FPE|TRAP|KILL) \[",
        )
        .at(FEEDBACK),
        rule(
            "crash.make",
            r"^\S*make(?:\[\d+\])?: \*\*\* \[.*\] (?:Segmentation fault|Aborted|Bus error|Illegal instruction|Floating point exception|Trace/breakpoint trap|Speicherzugriffsfehler|Abgebrochen|Erreur de segmentation|Abandon|Violación de segmento|Abortado|Error 13[234569])",
        ),
        // BSD's make names the signal of a recipe below what it printed.
        rule(
            "crash.bsd-make",
            r"^\*\*\* (?:\[.*\] )?(?:Signal (?:SIG)?(?:11|6|7|4|8|5|10|SEGV|ABRT|BUS|ILL|FPE|TRAP)\b|(?:Segmentation fault|Abort(?:ed| trap)|Bus error|Illegal instruction|Floating (?:point )?exception))",
        )
        .at(FEEDBACK),
        rule("crash.bsd-make-killed", r"^\*\*\* (?:\[.*\] )?(?:Signal (?:9|(?:SIG)?KILL)\b|Killed\b)")
            .at(FEEDBACK)
            .means(KILLED),
        rule(
            "crash.make-killed",
            r"^\S*make(?:\[\d+\])?: \*\*\* \[.*\] (?:Killed|Getötet|Processus arrêté|Tué|Terminado \(killed\)|Error 137)",
        )
        .means(KILLED),
        rule(
            "crash.ninja",
            r"^ninja: .*subcommand (?:failed|crashed).*signal|^(?:Segmentation fault|Bus error|Illegal instruction)(?:\W*$| ?\(|: \d| at | in )|^Speicherzugriffsfehler|^Erreur de segmentation|^Aborted(?: \(core dumped\))?$",
        )
        .at(FEEDBACK),
        rule(
            "crash.shell",
            r"(?:: line \d+:|\[\d+\]|^\S+: \d+:)\s+(?:\d+\s+)?(?:Segmentation fault|Aborted|Bus error|Illegal instruction|Floating point exception|Trace/breakpoint trap|Speicherzugriffsfehler|Erreur de segmentation|Violación de segmento)",
        ),
        rule(
            "crash.core-dumped",
            r"\(core dumped\)|\(Speicherabzug geschrieben\)|\(core dumped\s|\(`core' generado\)",
        ),
        rule(
            "crash.shell-killed",
            r"(?:: line \d+:|^\S+: \d+:)\s+(?:\d+\s+)?(?:Killed|Getötet|Processus arrêté|Terminado)\b|^Killed(?:: 9)?$|^\[\d+\]\S*\s+Killed",
        )
        .means(KILLED),
        rule(
            "crash.child-killed",
            r"\b[Ss]ignal: (?:9, SIGKILL|killed|KILL|SIGKILL)\b|(?i:terminated|killed|exited|failed|died|ended)\b.{0,40}\b(?:SIGKILL|signal[ =:]*9\b)|signal=SIGKILL",
        )
        .means(KILLED),
        rule(
            "crash.child-signal",
            r"(?i:terminated|killed|exited|failed|died|ended|aborted|crashed|received|caught)\b.{0,60}(?:\bSIG(?:SEGV|ABRT|BUS|ILL|FPE|TRAP|SYS)\b|\bsignal(?: code)?[ =:]*(?:11|6|7|4|8|5|10)\b)",
        ),
        rule(
            "crash.npm",
            r"^npm (?:error|ERR!) signal SIG(?:SEGV|ABRT|BUS|ILL|FPE|TRAP)|[Cc]ommand failed with signal .?SIG(?:SEGV|ABRT|BUS|ILL|FPE|TRAP)",
        ),
        rule(
            "crash.npm-killed",
            r"^npm (?:error|ERR!) signal SIGKILL|[Cc]ommand failed with signal .?SIGKILL",
        )
        .means(KILLED),
        rule(
            "crash.status-killed",
            r"(?i:exit(?:ed)?(?: with)?(?: a)?(?: non-zero)?(?: exit)?(?: status| code| value)?|ELIFECYCLE|Command failed with exit code)[ :=]*\(?(?:137|-9)\b",
        )
        .means(KILLED),
        rule(
            "crash.status",
            r"(?i:exit(?:ed)?(?: with)?(?: a)?(?: non-zero)?(?: exit)?(?: status| code| value)?|ELIFECYCLE|Command failed with exit code)[ :=]*\(?(?:139|134|135|136|132|-11|-6)\b",
        ),
        rule("crash.python", r"^Fatal Python error: |Windows fatal exception"),
        // A harness that names the signal of a wait status.
        rule(
            "crash.wait-status",
            r"\b[Ss]ignal: (?:SEGV|ABRT|BUS|ILL|FPE|TRAP|SYS)\b|\(Signal: (?:SIG)?(?:SEGV|ABRT|BUS|ILL|FPE|TRAP|SYS)\b",
        )
        .at(FEEDBACK),
        rule(
            "crash.harness",
            r"^\W*(?:\S+ )*Unexpected signal caught\b|\bCrash(?:ing|ed|es): *[1-9]",
        )
        .at(FEEDBACK),
        rule(
            "crash.xdist",
            r"worker '?gw\d+'? crashed|node down: Not properly terminated",
        )
        .at(FEEDBACK),
        rule(
            "crash.stack",
            r"has overflowed its stack|^fatal error: stack overflow|goroutine stack exceeds \d+-byte limit|^(?:fatal runtime error: )?stack overflow, aborting|^Stack overflow\.$|stack overflow \(native\)|\bSTORAGE_ERROR\b.*(?:stack overflow|erroneous memory)|^Fatal error: exception (?:Stdlib\.)?Stack_overflow|(?i)^(?:\S+: )?(?:internal |fatal )?(?:runtime )?(?:error: )?stack (?:space )?overflow(?: detected)?\b(?: \(e\.g|[.!:,]|$)|Process is terminated due to StackOverflow|\bEStackOverflow\b|^Runtime error 202\b",
        ),
        // Access to memory that is not there, in words of runtimes that catch the signal.
        rule(
            "crash.memory-access",
            r"^SIGSEGV: Illegal storage access|^Invalid memory access \(signal \d+\)|\bEAccessViolation\b|^Runtime error 216\b|EXCEPTION_ACCESS_VIOLATION|^(?:raised )?PROGRAM_ERROR : .*erroneous memory|^\[\d+\] signal \(\d+(?:\.\d+)?\): (?:Segmentation|Abort|Bus|Illegal)|^Segmentation fault at address|\*\*\* caught (?:segfault|bus error|illegal operation) \*\*\*",
        ),
        rule(
            "crash.jvm",
            r"A fatal error has been detected by the Java Runtime|The forked VM terminated without|The crash happened|Crashed tests:|daemon disappeared unexpectedly|Gradle Test Executor \d+' finished with non-zero exit value 1[34]",
        ),
        rule(
            "crash.ctest",
            r"\*\*\*Exception: (?:SegFault|Child aborted|Illegal|Bus error|Numerical|Other)|Subprocess (?:aborted|killed)\*\*\*|\((?:SEGFAULT|Subprocess aborted|ILLEGAL|BUS_ERROR|NUMERICAL)\)\s*$",
        )
        .at(FEEDBACK),
        rule("crash.meson", r"killed by signal (?:11|6|7|4|8|9)\b").at(FEEDBACK),
        rule(
            "crash.worker",
            r"(?i)(?:jest |test )worker (?:process )?.*(?:was terminated by another process|crashed)|\[vitest-pool\].*(?:Worker|terminated)|Worker (?:forks )?exited unexpectedly|^\W*Error: Channel closed|Tinypool.*(?:terminated|exited)",
        )
        .at(FEEDBACK),
        rule(
            "crash.dotnet",
            r"(?i)test host process crashed|The active test run was aborted|Fatal error\. (?:System\.)?(?:AccessViolation|Internal CLR)",
        )
        .at(FEEDBACK),
        rule(
            "crash.compiler",
            r"internal compiler error: (?:Segmentation fault|Aborted|Illegal|Bus error)|unable to execute command: (?:Segmentation fault|Aborted|Killed)|frontend command failed due to signal|rustc interrupted by SIG|compiler crashed with|error: compile command failed due to signal",
        )
        .at(FEEDBACK),
        rule("crash.ruby", r"\[BUG\] (?:Segmentation fault|Illegal|Bus Error|Stack)"),
        rule("crash.v8", r"^#\s*Fatal error in|^FATAL ERROR: (?:v8|node)::"),
        rule(
            "crash.sanitizer",
            r"Sanitizer:DEADLYSIGNAL|^==\d+==ABORTING|^==\d+==ERROR: (?:(?:HW)?Address|Memory)Sanitizer: ",
        ),
        rule(
            "crash.abort-words",
            r"^\*\*\* (?:stack smashing detected|buffer overflow detected) \*\*\*|^(?:double free or corruption|free\(\): invalid|malloc\(\): |corrupted size vs|munmap_chunk\(\))|^terminate called (?:after throwing|without an active)",
        ),
        rule(
            "crash.swift",
            r"Exited with (?:unexpected )?signal code \d+|Crash: \S+ at |^Fatal error: .*: file .*, line \d+$",
        )
        .at(FEEDBACK),
        rule("crash.bun", r"^panic\(main thread\): |oh no: Bun has crashed|Deno has panicked"),
        rule(
            "crash.segfault-word",
            r"(?i)^\W*(?:error: |fatal: |fatal error: )?(?:segmentation fault|segfault)(?:\W*$|\W*\(|[:,.!;]| at\b| in\b| while\b)|: (?:Segmentation fault|Bus error|Illegal instruction|Aborted)(?: +\(core dumped\))?$",
        )
        .at(FEEDBACK),
    ],
);

pub(super) const INTERRUPTED: &[Rule] = &table(
    ANY,
    CANCELLED,
    [
        rule(
            "cancel.python",
            r"^(?:!+ )?(?:_pytest\.outcomes\.Exit: )?KeyboardInterrupt\b(?: !+)?[:\s]*$|: KeyboardInterrupt$",
        ),
        rule(
            "cancel.make",
            r"^\S*make(?:\[\d+\])?: \*\*\* (?:\[.*\] )?(?:Interrupt|Terminated|Hangup|Beendet|Unterbrechung|Interrompu|Complété|Interrumpido|Terminado)",
        ),
        rule(
            "cancel.signal-word",
            r"(?i)\b(?:received|got|caught|on|due to|with|by) (?:an? )?(?:signal )?(?:2 |15 )?\(?(?:SIGINT|SIGTERM|SIGHUP|interrupt signal|termination signal|ctrl[-+]c)\b|\bSIG(?:INT|TERM|HUP)\b(?: signal)?(?:,| -)? (?:was |has been )?(?:received|caught|arrived|detected)\b|\b(?:interrupt|termination|terminate|kill|stop|shutdown) (?:signal )?(?:was |has been )?received\b|\b(?:shutting down|stopping|exiting|quitting|terminating|aborting) (?:gracefully )?(?:on|due to|because of|after) (?:an? |the )?(?:signal (?:2|15)\b|SIG(?:INT|TERM|HUP)\b|interrupt\b|ctrl)",
        ),
        rule(
            "cancel.child-signal",
            r"\(?signal: (?:2, SIGINT|15, SIGTERM|1, SIGHUP|interrupt|terminated|hangup)\b",
        ),
        rule(
            "cancel.npm",
            r"^npm (?:error|ERR!) signal SIG(?:INT|TERM)|[Cc]ommand failed with signal .?SIG(?:INT|TERM)|\bELIFECYCLE\b.*\bSIG(?:INT|TERM)",
        ),
        rule(
            "cancel.by-user",
            r"(?i)\b(?:interrupt(?:ed)?|cancel(?:l?ed)?|abort(?:ed|ing)?|stopped|terminated|killed)\b.{0,12} (?:by|from|on) (?:the )?(?:user|operator|keyboard|request|ctrl|signal(?: (?:2|15|1|(?:SIG)?(?:INT|TERM|HUP))\b|[.!)]*$))",
        ),
        rule(
            "cancel.user-did",
            r"(?i)\buser (?:has )?(?:aborted|cancell?ed|interrupted|requested (?:cancel|abort|shutdown|stop))|\b(?:cancel(?:l?ation)?|interrupt(?:ion)?|termination|shutdown) (?:was )?requested\b|Request interrupted",
        ),
        rule(
            "cancel.keyboard",
            r"^\s*(?:\^C\s*)+$|\bCtrl[-+]C (?:pressed|received|detected)|^\W*(?:error: )?(?i:keyboard interrupt)\b",
        ),
        // What command-line libraries print of an interrupt, and nothing else.
        rule(
            "cancel.library",
            r"^\W*Aborted!$|^Gracefully stopping\.\.\. \(press Ctrl\+C",
        )
        .at(FEEDBACK),
        rule(
            "cancel.shutdown",
            r"\b(?:[A-Z]\w+|server|build) (?:server |daemon )?is shutting down",
        )
        .at(FEEDBACK),
        rule(
            "cancel.nextest",
            r"^\s*(?:Canceling|Cancelling) due to (?:interrupt|signal|termination)|^\s*(?:SIGINT|SIGTERM) \[",
        )
        .at(FEEDBACK),
        rule(
            "cancel.bazel",
            r"(?i)\bbuild (?:was )?(?:interrupted|cancell?ed)\b|Caught interrupt signal|command interrupted",
        )
        .at(FEEDBACK),
        rule("cancel.gradle", r"^\W*Build cancelled|> Build cancelled").at(FEEDBACK),
        rule(
            "cancel.node",
            r"^\W*(?:Interrupted|SIGINT|Aborted by Ctrl-C|Cancell?ed)[.!]?\s*$|'The test was cancelled due to .*interrupt|Interrupted while running",
        )
        .at(FEEDBACK),
        rule("cancel.ninja", r"^ninja: build stopped: interrupted").at(FEEDBACK),
        rule(
            "cancel.ruby",
            r"^\S*: Interrupt$|\bInterrupt(?: \(Interrupt\))?$|^Interrupt:",
        )
        .at(FEEDBACK),
        rule(
            "cancel.shell",
            r"^(?:\S+: )?(?:line \d+: +\d+ )(?:Terminated|Interrupt|Hangup|Beendet)\b|^Terminated$|^Session terminated",
        ),
        rule("cancel.maven", r"InterruptedException$|The build was cancell?ed").at(FEEDBACK),
        rule(
            "cancel.generic",
            r"(?i)^\W*(?:error: |fatal: )?(?:operation|request|run|execution|task|job|prompt|session|conversation|process)(?: was| has been)? (?:cancell?ed|interrupted|aborted)(?: by .*)?[.!]*$|^\W*(?:test run|tests?)(?: was| has been)? (?:cancell?ed|interrupted)[.!]*$",
        ),
    ],
);
