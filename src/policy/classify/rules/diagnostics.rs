//! Compilers, linkers, interpreters and package managers that cannot build, and findings of linters, formatters and type checkers.

use super::{
    BROKEN, BUILD, FAILED, FEEDBACK, INVALID, LINT, MISSING, Rule, TEST, TYPECHECK, UNCLEAR, rule,
    table,
};

const NOT_LINT: u8 = BUILD | TEST | TYPECHECK;
const NOT_TYPECHECK: u8 = BUILD | TEST | LINT;
const RUN: u8 = BUILD | TEST;

/// Words that only a compiler, linker or interpreter says of source.
pub(super) const COMPILE: &[Rule] = &table(
    FEEDBACK,
    BROKEN,
    [
        rule(
            "missing.configuration",
            r"doesn't contain a conf\.py|can only install with an existing package-lock|No steps directory",
        )
        .means(MISSING),
        rule(
            "build.lock-file",
            r"can only install packages when your package\.json|Error importing plugin \x22",
        ),
        // A validator found that a document is not what its schema says; that its own settings are not, it says otherwise.
        rule(
            "lint.schema",
            r"validity error : |^\s*instancePath: |^Schema validation errors were encountered|::\$\S*: .* is not (?:of type|one of|valid under)",
        )
        .at(LINT | TEST)
        .means(FAILED),
        // TeX marks its errors so, whatever they are about; that there is nothing to read is another matter.
        rule("build.tex", r"^! (?:[A-HJ-Z]|I[^ ]|I [^c])").at(RUN),
        rule("build.xml-parse", r":\d+: (?:namespace error|parser error) : "),
        rule(
            "build.lint-parse",
            r"\sparse ━|\bSC10(?:09|3[0-9]|4[0-9]|5[0-9]|6[0-4]|7[0-39]|8[89])\b.*\(error\)|^(?:\S+: )?Unexpected (?:token|character|end of|EOF|indent|keyword)\b|^\s*(?:x|×|✖) (?:Unexpected token|Unterminated|Invalid (?:Character|Unicode)|Expected (?:`|an? |.* but))|^\s*expecting ['\x22#\w].*\S$|: expected '\S+' (?:near|\(to close)|\bunparsable section\b|\bCssSyntaxError\b",
        )
        .at(LINT),
        // What a source includes is the source's matter; what the command line names is not.
        rule(
            "build.header",
            r"^(?:\W*|\S+:\d+(?::\d+)?: )fatal error: (?:[\w./+-]+\.(?:h|hh|hpp|hxx|inc|inl|tcc|cuh)|[a-z_][\w/]*): No such file or directory\W*$|^(?:\W*|\S+:\d+(?::\d+)?: )(?:fatal )?error: (?:'[^']+'|\x22[^\x22]+\x22) file not found\b",
        ),
        rule(
            "missing.compiler-input",
            r"^cc1\S*: fatal error: \S+: No such file|^cc1\S*: [^:]+: [^:]+: (?:Datei oder Verzeichnis nicht gefunden|Aucun fichier ou dossier|No existe el (?:fichero|archivo)|Arquivo ou diretório|File o directory non esistente|Нет такого файла)|: error: no such file or directory: '|: no input files",
        )
        .means(MISSING),
        rule(
            "input.compiler-locale",
            r"(?:unbekannte|nicht erkannte|ungültige) \S*[Oo]ption|[Oo]ption \S*(?: de la ligne de commande)? ?«?.{0,40} ?»? (?:inconnue|non reconnue|invalide)|opción (?:\S+ )?(?:desconocida|no reconocida|inválida)|opzione (?:sconosciuta|non riconosciuta|non valida)|opção (?:desconhecida|não reconhecida|inválida)|неизвестный (?:параметр|ключ)|нераспознанный параметр",
        )
        .means(INVALID),
        rule(
            "git.conflict",
            r"^CONFLICT \(|^Automatic merge failed|[Mm]erge conflict in |^(?:error|fatal): (?:could not apply|Pulling is not possible|Exiting because of an? unresolved|patch failed|Failed to merge|.*would be overwritten by|Your local changes|.*patch does not apply)|^error: .*: (?:patch does not apply|already exists in working directory)|^Resolve all conflicts manually|You have unmerged|needs merge$|\b[1-9]\d* files? (?:with )?(?:unresolved|conflicts?)\b|\b[1-9]\d* (?:\w+ )?conflicts? (?:remain|left|in|found|to resolve)\b|\bunresolved (?:file )?(?:conflicts?|merges?)\b|(?i:\bresolve (?:all |the |these )?(?:merge )?conflicts\b)|^Hunk #\d+ FAILED|^ ?! \[(?:remote )?rejected\] |\d+ out of \d+ hunks? FAILED",
        )
        .means(UNCLEAR),
        rule(
            "build.rustc",
            r"^\s*error\[E\d{4}\]|^error: (?:expected .*(?:found|,)|this file contains an? un|mismatched closing|unexpected (?:closing|token|end)|unterminated|unclosed|unknown (?:start of )?token|no rules expected|cannot find (?:macro|derive|attribute)|couldn't read|linking with `|prefix `|missing `|invalid suffix|failed to run custom build command|failed to (?:parse manifest|parse lock file|load manifest|resolve patches|parse the)|invalid (?:table|key|array|string|inline|character|basic|type:|TOML)|unclosed (?:table|array|string)|could not parse|duplicate key|cyclic package|the lock ?file .* needs to be updated|failed to select a version for `|package `\S+` cannot be built because|rustc \S+ is not supported|feature `|proc macro|no default toolchain|Error writing files: failed to resolve mod|the compiler unexpectedly panicked|internal compiler error|environment variable `)|^error: (?:`\S+`|\S+) (?:is|was|must|cannot|requires|has)\b.*manifest|\x22reason\x22:\x22build-finished\x22,\x22success\x22:false",
        ),
        rule(
            "build.linker",
            r"undefined reference to|undefined symbols? (?:for|:|referenced)|Undefined symbols|unresolved external symbol|multiple definition of|duplicate symbol|cannot find -l\S+|\b(?:l|mo|wi)?ld(?:\.\w+)?: (?:error|fatal|symbol|cannot|unable|library)|collect2: error|ld returned \d+|linker command failed|LINK : fatal error|LNK\d{4}|relocation .* against|unable to find library -l|file format not recognized|library not found for -l",
        ),
        rule(
            "build.cc",
            r"^\S[^:]*(?:\(\d+(?:,\d+)?\)|:\d+(?::\d+)?): (?:fatal )?error(?: C\d+)?: |: (?:Fehler|erreur|error fatal|schwerwiegender Fehler|erreur fatale|errore|erro|ошибка|错误|エラー): |^cc1\S*: (?:fatal error|all warnings being|error)|^compilation terminated|^\S+: error: [a-z].*\[-Werror",
        )
        .at(RUN),
        rule(
            "build.clang-tidy",
            r"\[clang-diagnostic-error\]|\.(?:c|cc|cpp|cxx|h|hpp):\d+:\d+: fatal error: ",
        )
        .at(LINT | TYPECHECK),
        rule(
            "build.tsc",
            r"error TS(?:[1234]\d{3}|7\d{3}|[89]\d{3}|1[0-7]\d{3}|18\d{3}|2\d{4})\b|^Found \d+ errors? in \d+ files?",
        )
        .at(NOT_TYPECHECK),
        rule(
            "build.tagged-place",
            r"(?i)^\W{0,3}\[?(?:fatal )?error\b[^\]]{0,40}\]:? \S+\.\w+:\d+|\berrors? (?:while |when |in )?compiling\b|\bcompilererror\b|compilerexception",
        )
        .at(RUN),
        rule("build.tsc-syntax", r"error TS1(?:00[1-9]|0[1-9]\d|[1-4]\d\d)\b"),
        rule(
            "build.go",
            r"^(?:\./|\.\./|\w[\w./-]*/|vet: )?\S+\.go:\d+:\d+: (?:undefined|cannot use|syntax error|\S+ (?:declared and not used|redeclared|imported and not used|undefined|is not (?:a type|in std))|imported and not used|declared and not used|missing return|invalid (?:operation|argument)|expected |too many|not enough|assignment mismatch|no required module|could not import|package |undeclared|duplicate|import cycle|unknown field|non-|first argument|\x22\S+\x22 imported and not used|declared|mismatched types|cannot |missing |type |use of|impossible|assignment|label|multiple-value|method |unexpected)|no required module provides package|is not in (?:std|GOROOT)|missing go\.sum entry|import cycle not allowed|build constraints exclude all Go files|cannot find package|updates to go\.mod needed|go: .*(?:errors parsing go\.mod|inconsistent vendoring|requires go >=|module .* found .*but does not contain|module declares its path|ambiguous import|checksum mismatch|verifying)|verifying \S+: checksum mismatch|SECURITY ERROR",
        ),
        // The heading of what is wrong in a package; what `go vet` finds has it, too.
        rule("build.go-package", r"^# \S+/\S+$").at(NOT_LINT),
        rule(
            "build.golangci-typecheck",
            r"\(typecheck\)|level=error msg=\x22.*typechecking error",
        )
        .at(LINT),
        rule(
            "build.python-syntax",
            r"^(?:E\s+|\W*)?(?:SyntaxError|IndentationError|TabError): |^\S+\.py:\d+:\d+: (?:E999|E9\d\d|E0001|invalid-syntax)|\bsyntax-error\b|invalid-syntax|cannot format .*: Cannot parse|error: (?:invalid syntax|unexpected indent|unindent|Invalid syntax).*|\[syntax\]$|^\*\*\* Error compiling|Sorry: (?:IndentationError|SyntaxError|TabError)",
        ),
        rule(
            "build.pyright-syntax",
            r" - error: (?:Expected (?:expression|indented block|class name|\x22|member name|parameter name|function name|import|in$|:)|\x22[\[({]\x22 was not closed|Unindent not expected|Unexpected indentation|Statements must be separated|String literal is unterminated)",
        )
        .at(TYPECHECK),
        rule(
            "build.java",
            r"\.(?:java|kt|kts|scala|groovy):\[?\d+[,:]?\d*\]?:? ?(?:\[[^\]]*\] )?error|^\[ERROR\] \S+\.(?:java|kt|scala|groovy):\[\d+|^e: (?:file:///)?\S+\.kts?:|COMPILATION ERROR|Compilation fail(?:ed|ure)|^error: (?:cannot find symbol|package \S+ does not exist|class \S+ is public)|: error: (?:cannot find symbol|package|incompatible types|class|';' expected|not found|type mismatch)|^\[error\] \S+\.scala:\d+|-- (?:\[E\d+\] )?.*Error: \S+\.scala|Execution failed for task ':\S*[cC]ompile\w*'",
        )
        .at(NOT_LINT),
        rule(
            "build.dotnet",
            r"error (?:(?:CS|FS|BC|NETSDK|CA|IDE|SA|RZ|BL)\d{3,5}|MSB[2-9]\d{3}|NU(?:10\d\d|110[4-9]|11[1-9]\d|12\d\d|1[4-9]\d\d|[2-9]\d{3})):|^Build FAILED|error : ",
        )
        .at(NOT_LINT),
        rule(
            "build.swift",
            r"\.swift:\d+:\d+: error: |error: (?:no such module|emit-module command failed|fatalError|cannot find '.*' in scope|missing package|dependencies could not be resolved)|error: .*could not be resolved|fatal error: module '\S+' not found",
        )
        .at(NOT_LINT),
        rule(
            "build.haskell",
            r"\.hs:\d+:\d+: error|Could not (?:find|load) module|Variable not in scope|\bcabal: .*(?:Could not resolve dependencies|Failed to build)|Error: \[Cabal-\d+\]|rejecting: ",
        ),
        rule(
            "build.eslint-parse",
            r"Parsing error: |\(fatal\)|\s\(syntax\)$|\bparse-error\b|Lint/Syntax|error CS\d{4}:|E999|cannot format .*: Cannot parse",
        ),
    ],
);

/// Words that most likely mean that it does not load, resolve or install; a place in a file is a finding instead.
pub(super) const LIKELY: &[Rule] = &table(
    FEEDBACK,
    BROKEN,
    [
        rule("build.python-import", r"^(?:E\s+)?(?:ModuleNotFoundError|ImportError): ").at(RUN),
        rule(
            "build.javascript-syntax",
            r"^(?:\[?\w*\]?:? ?)?(?:Uncaught )?SyntaxError: |Parsing error: |\bParse error\b|^\W*\[error\] \S+: SyntaxError|SyntaxError: .*\(\d+:\d+\)|\x22fatal\x22:true|Unexpected token .* in JSON|is not valid JSON|JSON\.parse|CssSyntaxError|Module parse failed|code format aborted due to parsing errors|\bparse\s+━|✘ \[ERROR\] (?:Expected|Unexpected|Unterminated|Syntax error)|Transform failed with \d+ error|JSONParseError|EJSONPARSE|Failed to parse (?:source|JSON|json|module|TOML|YAML|file|the)|BABEL_PARSE|Babel.*unexpected token",
        ),
        rule(
            "build.javascript-import",
            r"Module not found: (?:Error: )?|Cannot find (?:module|package) '|Can't resolve '|Could not resolve (?:\x22|'|entry|import)|ERR_MODULE_NOT_FOUND|ERR_PACKAGE_PATH_NOT_EXPORTED|Failed to resolve (?:import|entry for package)|Rollup failed to resolve|does not provide an export named|is not exported (?:by|from)|No matching export in|Relative import path .* not prefixed|Module not found \x22|error: Could not resolve: |Cannot resolve (?:module|import)|Unable to resolve (?:module|path|dependency)",
        ),
        rule(
            "build.jest-load",
            r"Test suite failed to run|Jest encountered an unexpected token|Failed Suites \d+|FAIL .* \[ .* \]$|Failed to load url|Error: Failed to (?:load|collect) |No test suite found in file",
        ),
        rule(
            "build.bundler",
            r"^(?:webpack .*)?(?:compiled with|[1-9]\d*) errors?(?: in \d+|$| and)|^\W*\[(?:vite|rollup|plugin|esbuild)[^\]]*\].*(?:[Ee]rror|failed|Could not|Failed)|error during build:|Build failed with \d+ errors?|✘ \[ERROR\]|RollupError|Failed to compile\.?|webpack\S* .*compiled with [1-9]\d* error|^ERROR in [^\s(]|error: (?:bundling|Bundle) failed|Build failed because of webpack errors|Parcel.*[Bb]uild failed",
        )
        .at(RUN),
        rule(
            "build.elixir",
            r"^\*\* \((?:CompileError|SyntaxError|TokenMissingError|MismatchedDelimiterError|UndefinedFunctionError|Code\.LoadError|Mix\.\w+)|== Compilation error in file|could not compile dependency|cannot compile module|^\*\* \(Mix\) [A-Z]",
        ),
        rule(
            "build.ruby",
            r"syntax error[,s]|cannot load such file -- |\(LoadError\)|uninitialized constant|\(NameError\)|Lint/Syntax|\(SyntaxError\)|Failed to build gem native extension|Bundler could not find compatible versions|Could not find compatible versions|There was an error parsing `|An error occurred while installing",
        ),
        rule(
            "build.php",
            r"PHP (?:Parse|Fatal) error:|^(?:Parse|Fatal) error: |Errors parsing |Your requirements could not be resolved to an installable set|Class \x22\S+\x22 not found|Class '\S+' not found",
        ),
        rule("build.undefined-function", r"\bundefined function\b").at(BUILD | LINT | TYPECHECK),
        rule(
            "build.zig-nim-misc",
            r"\.(?:zig|nim|d|v|ml|mli|re|res|cr|adb|f90|f95|pas|hx|gleam|elm|purs|dart|lua|erl|jl|sol|vala|proto|thrift|cu|odin)(?:\(\d+(?:, ?\d+)?\)|:\d+(?::\d+)?)?:? *(?:Error|error|Fatal|syntax error)|^File \x22\S+\.mli?\x22, line \d+|^Error: (?:Unbound|This expression|Syntax error|Compilation)|-- [A-Z ]+ -{3,}|LoadError: |^ERROR: LoadError|ERROR: syntax:|error: the following (?:build|command) .*failed|\blua(?:c|jit)?[\d.]*: \S+:\d+: .*(?:unexpected symbol|expected near|expected \(to close|unfinished|malformed|near '?<eof>)|module '\S+' not found:|protoc.*failed|parse error|syntax error(?:$|[:, ]| near| at)|Syntax error:|Error: Syntax error|: syntax error|compile error|compilation error",
        ),
        rule(
            "build.yaml",
            r"yaml: line \d+|YAMLException|(?:yaml\.)?(?:scanner\.ScannerError|parser\.ParserError)|mapping values are not allowed|TOMLDecodeError|tomllib|(?:^|[^\w.])toml: |TOML parse error|(?i:invalid (?:JSON|YAML|TOML|XML)\b)|JSONDecodeError|could not parse (?:\S+ as )?(?:JSON|YAML|TOML|XML)|Unexpected end of JSON|xml\.\S*ParseError|not well-formed|(?i:failed to parse|error parsing|cannot parse|could not parse|unable to parse|parsing (?:error|failed)|parse failure)",
        ),
        rule(
            "build.cmake",
            r"^CMake Error(?: at| in|:)|Could NOT find|Could not find a package configuration|^-- Configuring incomplete|configure: error:|Package '?\S+'?,? (?:was not found in the pkg-config|required by .*, not found)|No package '\S+' found|Package requirements \(.*\) were not met|^\S+:\d+:\d+: ERROR: |ERROR: Dependency \x22|Dependency \x22\S+\x22 not found|autoreconf: |aclocal: error|automake: error|Run-time dependency .* found: NO|pkg-config .*(?:exited with|did not exit)|The system library `\S+` required by crate|Could not find (?:directory of )?(?:OpenSSL|openssl)|\*\*\* .*(?:missing separator|multiple target|commands commence|unterminated|recipe commences|missing `?endif)|missing separator",
        ),
        rule(
            "build.bazel",
            r"^ERROR: .*(?:Compiling|Linking|Couldn't build file|error loading package|Build did NOT complete|BUILD(?:\.bazel)?:\d+:\d+|failed: \(Exit|Analysis of target|no such)|FAILED: Build did NOT complete|NO STATUS",
        ),
        rule(
            "build.dependencies",
            r"npm (?:error|ERR!) (?:code )?(?:ERESOLVE|ELIFECYCLE|EINTEGRITY|ENOTSUP|EBADENGINE|EBADPLATFORM|EJSONPARSE|gyp)|unable to resolve dependency tree|ResolutionImpossible|conflicting dependencies|[Vv]ersion solving failed|No solution found when resolving|because .* depends on .*(?:conflict|incompatible|forbidden)|gyp ERR!|node-gyp|ERR_PNPM_(?:PEER_DEP|OUTDATED_LOCKFILE|LOCKFILE|UNSUPPORTED|FROZEN)|lockfile (?:is|would|needs).*(?:out of date|outdated|modified|updated|not up)|Your lockfile needs to be updated|YN0028|npm ci.* can only install|not in sync|lock file's .* does not satisfy|subprocess-exited-with-error|metadata-generation-failed|Failed building wheel|Failed to build|Could not build wheels|error: command '.*' failed with exit|pip's dependency resolver|requires a different Python|Requires-Python|requires Python|The current project's (?:supported )?Python|THESE PACKAGES DO NOT MATCH THE HASHES|hash mismatch|[Cc]hecksum (?:mismatch|verification failed|did not match)|unmet dependencies|\bdependency problems\b|held broken packages|Depends: .* but|integrity check(?:sum)? failed|dependency conflict|The engine \x22node\x22 is incompatible|failed to build|[Cc]onflicting (?:requirements|versions)|version conflict|Detected package downgrade|dependency cycle|[Cc]yclic dependency|UNMET PEER",
        )
        .at(RUN),
        // A compiler or interpreter that nobody knows, by what only such programs complain of.
        rule(
            "build.error-words",
            r"^\W*(?:\w+: )?(?:(?i:fatal|compile|compiler|compilation) )?(?:[Ee]rror|ERROR)(?:\[[\w:-]+\])?: (?i:.*\b(?:(?:unknown|undefined|undeclared|unresolved|unbound) (?:variable|identifier|name|function|symbol|type|module|method|class|word|reference|import|label|macro|atom|procedure|constructor|operator)|not in scope|not declared|undeclared|(?:type|types) mismatch|mismatched types|cannot unify|expected type|has no member|no such (?:module|function|method|field)|duplicate definition|already defined|redefin(?:ed|ition)|unexpected (?:token|end of|character|identifier|symbol|indent|eof)|unterminated|unclosed|unbalanced))",
        )
        .at(RUN),
        // What a container holds is damaged: a part of it that is not found is no file that is not there.
        rule(
            "build.damaged",
            r"(?i)\b(?:file|archive|container|image|zipfile|pdf|stream|header|index|table|volume) (?:\S+ )?(?:is|appears to be|seems to be|looks) (?:damaged|corrupt(?:ed)?|truncated)\b|\b(?:damaged|corrupt(?:ed)?|truncated) (?:\w+ )?(?:file|archive|container|image|zip(?:file)?|pdf|stream|header|index|table)\b|\bsignature not found\b|\bunexpected end of (?:archive|data|compressed)\b|\bnot in (?:gzip|xz|bzip2|lzma|zstd) format\b|\bfile format not recognized\b|\b(?:bad|invalid|wrong) magic\b",
        ),
        rule(
            "build.parse-words",
            r"(?i)^\W*(?:\S+: )?(?:fatal )?error\b\W.{0,30}\b(?:(?:couldn't|could not|cannot|can't|failed to|unable to) parse|parse ?error|does not parse)|^\W*(?:\S+: )?(?:parse ?error|reader ?error|syntax ?error)\b.*\d",
        ),
        rule(
            "build.jvm",
            r"startup failed:|Could not compile (?:build|settings) file|Script compilation errors?:|Non-parseable POM|A problem occurred (?:evaluating|configuring) |Non-resolvable|Plugin \[?id: .* was not found|Unsupported class file major version|NoClassDefFoundError|UnsupportedClassVersionError|Could not resolve (?:all|dependencies|plugin|com\.|org\.)|Failed to collect dependencies|Could not create (?:task|plugin)",
        ),
    ],
);

/// Words that say that something did not build, not what: they hold where no better word was found.
pub(super) const WEAK: &[Rule] = &table(
    BUILD,
    BROKEN,
    [
        // Who explains how it is called did not understand how it was.
        rule(
            "input.help",
            r"(?i)^\W*usage: +\S|^\W*(?:please )?(?:try|run|use|see|type|execute|check)\b.{0,60}(?:\s--help\b|\bhelp['`\x22]|\bhelp (?:for|to)\b.{0,20}\b(?:usage|options|commands|help)\b)|\bfor (?:more )?(?:usage|help)(?: information)?,? (?:run|try|see|use|type)\b",
        )
        .at(FEEDBACK)
        .means(INVALID),
        rule(
            "input.config-error",
            r"\b(?:Invalid|Bad|Wrong|Unknown)?Config(?:uration)?(?:Parse|Validation|File)?(?:Error|Exception)\b|\bInvalidConfig\w*\b|\b(?:Usage|Option)(?:Error|Exception)\b",
        )
        .at(FEEDBACK)
        .means(INVALID),
        rule(
            "build.could-not-compile",
            r"^(?:error: )?could not compile [`'\x22]|^error: could not compile|^error: build failed|^error: aborting due to",
        )
        .at(BUILD | TEST | TYPECHECK),
        rule(
            "build.test-step-failed",
            r"^BUILD FAIL(?:ED|URE)|(?i)\bfailed to (?:compile|build|link)\b|\bcompil\w+ (?:\w+ )?failed|\bbuild failed",
        )
        .at(TEST),
        rule(
            "build.step-failed",
            r"(?i)\bbuild (?:has )?failed\b|\bcompil(?:ation|e|ing)\b.*\b(?:failed|error)|\bfailed to (?:compile|build|link|parse|load|resolve|install|generate|transpile|bundle|configure|render|initialize)|Execution failed for task|BUILD FAIL(?:ED|URE)|[1-9]\d* errors? generated|[1-9]\d* error\(s\)|panicked at|error: script",
        ),
        // What it was raised as stands at its end: the classifier looks there.
        rule("build.traceback", r"^Traceback \(most recent call last\)").at(BUILD).means(BROKEN),
        rule(
            "build.exception",
            r"^(?:Uncaught |Unhandled (?:exception|rejection)[: ]+|Exception in thread \S+ )?(?:[\w$]+(?:\.|::))*[A-Z]\w*(?:Error|Exception)\b|^panic: |^thread '.*' panicked|^Unhandled ",
        ),
        rule(
            "build.error-line",
            r"(?i)^\W*(?:\S+: )?(?:fatal |build |compile |compiler |syntax |type |internal |configuration )?(?:errors?|fatal|fehler|erreur|failure)\b[ :!\]]+\S|: error\b|\berror: ",
        ),
        rule(
            "build.place",
            r"^(?:\S[^:\s]*\.\w+|\w*file)(?::\d+(?:[:.]\d+)?|\(\d+(?:, ?\d+)?\)):? +[^\s\d]|^\S[^:\s]*\.\w+:\d+:\d+:[A-Za-z]|^\s*(?:at |in |on |from )?\.{0,2}/?[^\s:]+\.\w+:\d+(?:[:,.-]\d+){0,3}:?$|(?i)(?:^|[^\w:.-])[1-9]\d* (?:fatal |build |compile |syntax )?errors?\b",
        ),
        rule(
            "build.failed-words",
            r"(?i)\b(?:failed|failure|cannot|can't|couldn't|could not|unable to|no such|unknown|illegal|conflict(?:s|ing)?|mismatch(?:ed)?|duplicated?|ambiguous|undefined|unresolved|not defined|invalid|unexpected|missing|incompatible|unsupported|not found|aborted|exception)\b",
        ),
    ],
);

const CHECK: u8 = LINT | TYPECHECK;
pub(super) const FINDINGS: &[Rule] = &table(
    CHECK,
    FAILED,
    [
        rule("lint.rustc-denied", r"implied by `-D |#\[deny\(").at(LINT),
        rule("lint.clippy", r"clippy::|rust-clippy").at(LINT | BUILD | TEST),
        rule(
            "lint.eslint",
            r"\xE2\x9C\x96 \d+ problems? \(|ESLint found too many warnings|^\s+\d+:\d+\s+(?:error|warning)\s+\S|^\d+ problems?\b|\xE2\x9A\xA0 \d+ problems?|\x22errorCount\x22:\s*[1-9]",
        )
        .at(FEEDBACK),
        rule(
            "lint.format",
            r"^Diff in |would (?:be )?reformat(?:ted)?\b|would be left unchanged|Code style issues (?:found|in)|imports are incorrectly sorted|Run Prettier|^\[warn\] \S|not (?:properly |correctly )?formatted|(?i)\bformatting (?:issues?|errors?|differences|violations)|need(?:s|ed)? (?:re)?formatting|The following files (?:had|have|are not|need)|File content differs from formatting|Formatter would have printed|code should be clang-formatted|\[-Wclang-format-violations\]|is not formatted|[Ff]ound \d+ not formatted|unformatted|requires formatting|--- \S+\.orig|^diff -u \S+ |^diff \S+\.orig|mix format failed|^(?:Fixing|Rewriting) \S+\.\w+$|not gofmt|gofumpt|goimports",
        )
        .at(FEEDBACK),
        rule(
            "lint.codes",
            r"^Found [1-9]\d* (?:errors?|diagnostics?|issues?|problems?|warnings?|offenses?)|^[A-Z]{1,4}\d{3,5} ",
        ),
        rule(
            "lint.python",
            r"^\S+\.pyi?:\d+(?::\d+)?: (?:\[?[A-Z]\d{3,5}\b|error: |warning: |note: |[EWFCRN]\d)|Your code has been rated|^\*{5,} Module |^Found \d+ errors? in \d+ files?|^Success: no issues",
        ),
        rule(
            "lint.pyright",
            r"^\s*\S+:\d+:\d+ - (?:error|warning)|^[1-9]\d* errors?, \d+ warnings?|ERROR \S+:\d+:\d+-|error\[[a-z-]+\]",
        ),
        rule("lint.tsc", r"error TS\d+:|^TS\d+ \[ERROR\]: |^Found \d+ errors?").at(TYPECHECK),
        rule("lint.go", r"^\S+\.go:\d+(?::\d+)?: .+| \([a-z]+\)$|^\d+ issues?:?$"),
        rule("lint.shell", r"\bSC\d{4}\b|DL\d{4}|^In \S+ line \d+:"),
        rule(
            "lint.ruby",
            r"\b\d+ files? inspected, [1-9]\d* offenses?|: [CWEFR]: (?:\[Correctable\] )?\w+/\w+|offenses? detected",
        ),
        rule(
            "lint.java",
            r"You have \d+ (?:Checkstyle|PMD) violations?|[1-9]\d* (?:Checkstyle|PMD|SpotBugs|CPD) (?:violations?|errors?|rule)|Checkstyle (?:rule )?violations were found|SpotBugs (?:violations were found|ended with)|PMD rule violations|ktlint|KtLint found|detekt|Analysis failed with \d+ weighted issues|SpotlessCheck|spotless|Lint found \d+ errors|The following files had format violations",
        )
        .at(FEEDBACK),
        rule(
            "lint.biome",
            r"\blint/\w+/\w+|Found \d+ (?:errors?|warnings?|lint)|Some errors were emitted while running checks|\(deno-lint\)|error\[[\w-]+\]:|Found \d+ problems?",
        ),
        rule(
            "lint.location",
            r"^\S+:\d+(?::\d+)?:? +\S|^\S+\(\d+,\d+\): |^\s+\d+:\d+\s+\S|^\S+ \d+:\d+ |line \d+,? col(?:umn)? \d+|^\S+:\d+:\d+$",
        ),
        rule(
            "lint.count",
            r"(?i)\b[1-9]\d* (?:\w+ )?(?:errors?|findings?|violations?|offenses?|misspellings?|diagnostics?|failures?)\b|\b(?:leaks?|secrets?|issues?|problems?|violations?|findings?|vulnerabilities|offenses?|warnings?)(?: \w+)? ?: *[1-9]",
        ),
        rule(
            "lint.docs",
            r"MD\d{3}(?:/|\b)|\bL\d{3}\b|warnings? treated as errors?|[1-9]\d* (?:lint|style|spelling|type|format(?:ting)?) (?:errors?|warnings?|issues?|violations?|problems?)|Unknown word \(|^error: .* ==> |vulnerabilit(?:y|ies) found|[1-9]\d* vulnerabilit|found [1-9]\d* (?:leaks|secrets|vulnerabilities|warnings|errors|issues)|unused (?:dependencies|exports|files)|RUSTSEC-\d",
        ),
    ],
);

/// Words of no tool in particular that a check failed.
pub(super) const WEAK_FINDINGS: &[Rule] = &table(
    TEST | CHECK,
    FAILED,
    [
        rule(
            "check.difference",
            r"^\d+(?:,\d+)?[acd]\d+(?:,\d+)?$|^(?:Binary files|Files) .* differ|^\+\+\+ |^@@ -\d",
        ),
        // `gofmt -l`, `zig fmt --check`: all that is said is which files.
        rule(
            "check.paths",
            r"^(?:\.{0,2}/)?(?:[\w@.+-]+/)*[\w@.+-]*\w\.[a-z]\w{0,9}$",
        )
        .at(LINT),
        rule(
            "check.issue",
            r"^>> Issue:|(?i)^\W*severity: (?:low|medium|high|error|warning|critical)",
        )
        .at(CHECK),
        rule(
            "check.words",
            r"(?i)\b(?:fail(?:ed|ure|ures|s|ing)?|mismatch(?:es|ed)?|assert\w*|violations?|regressions?|differ(?:s|ent|ence|ences)?|does not match|do not match|not equal|unexpected|not ok|expected .*(?:got|but|found|actual|received|was)|wrong|incorrect|broken|invalid|unexpectedly|too many|exceed(?:s|ed)?|panicked|exception|traceback)\b|\xE2\x9C\x97|\xE2\x9C\x98|\xE2\x9C\x96|\xE2\x9D\x8C|^not ok|^[-+]{3} ",
        ),
        rule(
            "check.errors",
            r"(?i)^\W*\[errors?\]:? \S|(?:^|[^0-9 ] |[^0]\s)\berrors?\b(?:[^:]|:\s*[^0\s]|$)",
        ),
        rule(
            "check.warnings",
            r"(?i)\b[1-9]\d* (?:warnings?|issues?|problems?|findings?|hints?)\b|^\W*warning\b",
        )
        .at(CHECK),
    ],
);
