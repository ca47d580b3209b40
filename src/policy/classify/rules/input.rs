//! A tool refuses a flag, an option or a configuration value, or something that it was asked for is not there.

use super::{ANY, BUILD, FEEDBACK, INVALID, MISSING, Rule, TEST, rule, table};

/// The name of the rule that knows a line of a configuration.
pub(in super::super) const IN_CONFIGURATION: &str = "input.in-configuration";
/// The name of the rule that knows what a shell finds no files for.
pub(in super::super) const NO_MATCH: &str = "missing.glob";

pub(super) const RULES: &[Rule] = &table(
    FEEDBACK,
    INVALID,
    [
        rule(
            "input.argparse",
            r"\berror: (?:unrecognized arguments|invalid choice|argument \S+: (?:invalid|expected|not allowed)|the following arguments are required|ambiguous option|no such option|expected (?:one|at least one) argument)|: error: .*: (?:invalid \S+ value|expected one argument)",
        )
        .at(ANY),
        rule(
            "input.unexpected-argument",
            r"^error: (?:unexpected argument|invalid value '|unrecognized (?:subcommand|option)|unexpected value|the argument '|a value is required|equal sign is needed|the following required arguments|invalid type: .*argument|Unrecognized option|found argument)|^error: (?:one or more )?required arguments? ",
        )
        .at(ANY),
        rule(
            "input.option",
            r"(?i)(?:^|[:;>] *|\] )['\x22]?(?:error:? )?(?:unknown|unrecogni[sz]ed|invalid|illegal|unsupported|unexpected|bad|undefined|ambiguous|no such) (?:command[- ]line |command |build |cli |long |short |global )?(?:options?|flags?|arguments?|switch(?:es)?|parameters?)\b(?: ?[:=`'\x22(]| -|$| \S+$| given| passed|s? -| provided|\.| name\b)",
        )
        .at(ANY),
        rule(
            "input.option-after",
            r"(?i)(?:option|flag|argument|parameter|switch) ['`\x22]?-[\w=-]+['`\x22]? (?:is (?:not (?:recogni[sz]ed|supported|valid|known|defined|allowed)|unknown|invalid|unrecogni[sz]ed|ambiguous|deprecated and)|does not exist|requires (?:an? )?(?:argument|value)|not (?:found|recogni[sz]ed|defined|supported)|needs an argument|cannot be used|expects)",
        )
        .at(ANY),
        rule(
            "input.go-flag",
            r"\b(?:flag|option|argument) error: |flag provided but not defined|flag needs an argument|unknown (?:shorthand )?flag|invalid (?:boolean )?(?:value|argument) \S+ for (?:flag )?\S*-",
        )
        .at(ANY),
        rule(
            "input.click",
            r"^Error: (?:No such option|Got unexpected extra argument|Invalid value for (?:'?-|'?--)|Option '?-|Missing (?:option|argument|parameter))",
        )
        .at(ANY),
        rule(
            "input.click-value",
            r"^Error: Invalid value: |^Error: Invalid value for '\S+': (?:[^P]|P[^a]|Pa[^t])",
        ),
        rule(
            "input.compiler-option",
            r"unrecognized command[- ]line option|unknown argument: '-|unsupported (?:option|argument) '-|error: Unrecognized option|javac: invalid (?:flag|target release|source release)|error: (?:invalid (?:source|target) release|release version \d+ not supported|invalid flag)|Unrecognized VM option|Unrecognized option: -|scalac error: bad option|bad option: -|kotlinc?.*unsupported (?:plugin )?option|unknown warning option|unknown (?:codegen|debugging|unstable) option|error: unknown (?:target triple|target CPU|codegen option)|error: .*is not a valid (?:value|target triple|option|edition)|invalid value '.*' (?:in|for) '-|-W\w+ is not (?:valid|recognized)|invalid argument '.*' to |error: -\S+ (?:requires|is not supported|can only be)",
        ),
        rule(
            "input.tsc-config",
            r"error TS(?:50[0-46-9]\d|505[0-69]|508[024-9]|5[1-9]\d\d|6046|6044|6064|6304|6306|6310|6266|6369|18003|17004)\b",
        ),
        rule(
            "input.eslint-config",
            r"(?i)^\W*(?:Error: )?(?:ESLint configuration (?:in .* )?is invalid|Invalid option '-|Key \x22.*\x22: |Could not find (?:config|plugin) \x22|A config object is using|ESLint couldn't find (?:the (?:config|plugin)|an eslint\.config|a configuration file)|Failed to load (?:config|plugin)|Cannot read config file|Error: Unexpected (?:key|top-level property)|TypeError: Key \x22|ConfigError)|Definition for rule '.*' not found|Configuration for rule \x22.*\x22 is invalid|Oops! Something went wrong!.*config",
        ),
        rule(
            "input.pytest-config",
            r"^(?:ERROR: |E\s+)?(?:pytest\.PytestConfigWarning|Unknown config option|.*pytest\.ini:\d+: |usage: pytest|.*: error: (?:unrecognized|argument [^:]*(?:: .*(?:invalid|expected|not allowed|must|requires?|ignored)|$)|ambiguous))|not found in `markers` configuration|UsageError: |^ERROR: (?:invalid|Unknown|Wrong|usage:)",
        ),
        rule(
            "input.config-file",
            r"(?i)\b(?:invalid|bad|malformed|unknown|unrecogni[sz]ed|unexpected|unsupported|incorrect|illegal|wrong) (?:\S+ )?(?:config(?:uration)?|settings?|options? in (?:the )?config)(?: (?:file|value|option|key|setting|object|property|field|for|in|entry|version|format|variable|directive|parameter|keyword|section|statement))|(?:config(?:uration)?|settings)(?: file)? (?:\S+ )?(?:is|are) (?:invalid|malformed|not valid)|^\W*invalid configuration:?$|unsupported version of the configuration|can't load config|(?:failed|unable|error|could not|cannot|couldn't) (?:to )?(?:read|load|reading|loading|parse|parsing|validate|validating) (?:the )?(?:\S+ )?(?:config(?:uration)?|settings)\b|config(?:uration)? (?:error|invalid|validation (?:error|failed))|error in (?:the )?config(?:uration)?|configuration resulted in errors|no checks enabled|not a valid (?:config|configuration|setting|preset|reporter|value for)|Unknown (?:config|configuration|setting|rule|cop|reporter|preset|environment|engine|key|property|field)\b.*(?:config|in \S+\.\w+|\.(?:toml|ya?ml|json|cfg|ini|js)\b)|unknown (?:field|key|variant|rule selector|linters?|rule|cop|check|codes?)\b.*(?:expected|`|:|'|\x22)|Invalid rule selector|unrecognized (?:cop|rule|check)",
        ),
        // What a server or daemon says of a line in its configuration.
        rule(
            IN_CONFIGURATION,
            r"(?i)(?:\.(?:conf|cfg|cnf|ini)|/\.\w+rc|_config)(?:[:,]? (?:at |on )?line |:)\d.{0,40}(?:\b(?:unknown|bad|invalid|unexpected|unrecogni[sz]ed|unsupported|illegal|misplaced|duplicate) (?:[\w-]+ ){0,2}(?:directive|variable|keyword|option|parameter|setting|argument|value|count|size|number|section|statement|command|name|type|mode|interval)s?\b|\bexpect(?:ed|s) (?:an? )?(?:yes or no|on or off|true or false|number|integer|boolean)\b|\bonly (?:supports|accepts|allows) )|\b(?:unknown|bad|invalid|unexpected|unrecogni[sz]ed|unsupported|illegal|misplaced|duplicate) (?:[\w-]+ ){0,2}(?:directive|variable|keyword|option|parameter|setting|argument|value|count|size|number|section|statement|command|name|type|mode|interval)s?\b.{0,60}\bin (?:file )?\S*(?:\.(?:conf|cfg|cnf|ini)|_config)\W{0,2}(?::|,? (?:at |on )?line )\d",
        ),
        rule(
            "input.given",
            r"(?i)\bconfig(?:uration)? (?:value|option|setting|key) ['`\x22][\w.-]+['`\x22]: |\b(?:supplied|given|passed|provided) (?:to|for|in|as) (?:the )?['`\x22]?[\w.-]+['`\x22]? (?:option|setting|parameter|argument|flag)\b",
        ),
        // A configuration that is checked against its schema; where something is checked, that is its business.
        rule(
            "input.schema",
            r"(?i)\badditional propert(?:y|ies)\b.{0,60}\b(?:not allowed|not permitted|invalid|not expected)|\b(?:unrecogni[sz]ed|unknown|unsupported|unexpected|extraneous) (?:(?:top-level|root|configuration|config) )?(?:propert(?:y|ies)|keys?|sections?|settings?)\b ?(?:[:='`\x22(]|\S+ (?:in|at|found)\b)",
        )
        .at(BUILD),
        rule(
            "input.jest-config",
            r"^\W*Validation Error:|Validation Warning:.*error|Unrecognized CLI Parameter|Invalid configuration object|has been initialized using a configuration object that does not match|Module .* in the .* option was not found|Preset .* not found|Unknown option \x22",
        ),
        rule(
            "input.usage",
            r"(?i)^\W*(?:error: |fatal: |\S+: )?(?:invalid|unknown|unrecogni[sz]ed|bad|illegal|missing|unsupported) (?:(?:usage|invocation|argument|option|operand|parameter|format|log level|reporter|formatter|style|profile|edition|generator|preset|target triple|language standard|platform|environment variable|regex|regular expression|glob|subcommand|command line)\b|(?:value|mode|level|number|pattern)(?:s? ?[:='`\x22(]| (?:for|of|given|passed|specified|in)\b|\W*$))",
        ),
        rule(
            "input.value",
            r"(?i)\b(?:invalid|illegal|bad|unsupported|unexpected) value (?:['`\x22].*['`\x22] )?(?:for|of|given|passed|supplied|provided|in)\b|\b(?:config(?:uration)?|option|setting|parameter|argument|flag)s?\b.{0,60}\bmust (?:be|not be|have)\b|\bmust be (?:one of|an? (?:positive |non-negative )?(?:integer|number|boolean|string|array|object))\b|expected (?:one of|an? (?:integer|number|boolean|string|array|object)) .*(?:option|config|setting)|is not (?:a valid|an allowed|one of the allowed) (?:choice|value|option)(?:$|[.!:;,(\[]| for\b| \()|cannot (?:both )?be (?:used|combined|specified) (?:together|with|at the same)|(?:are|is) mutually exclusive|allowed (?:values|choices) (?:are|:)|valid (?:values|choices|options) (?:are|include)\b|choose from ",
        ),
        rule(
            "input.cmake",
            r"CMake Error: (?:Could not create named generator|Unknown argument|Parse error in command line|The source directory .* specified|Invalid)|CMake Error: Unknown|No such preset|Could not read presets|No preset|meson.*ERROR: Unknown options?|ERROR: Unknown options?:|ERROR: Value .* for option|configure: error: (?:unrecognized|invalid|unknown) (?:option|feature|package|host|variable)|ninja: (?:error|fatal): (?:invalid|unknown) (?:option|tool|flag|argument|-)|^configure: error: .*invalid",
        ),
        rule(
            "input.maven-gradle",
            r"Unable to parse command line options|Unknown command-line option|Unknown lifecycle option|The parameters .* are (?:missing or )?invalid|Cannot (?:set|convert) (?:the )?(?:property|value|string)|Problem configuring task|Unrecognized (?:JVM |VM )?option|No argument was provided for command-line option|Unknown project property|The requested profile .* could not be activated",
        ),
        rule(
            "input.misc",
            r"(?i)^(?:\S+: )?(?:illegal|invalid|unrecognized|unknown) option\b|^try '.* --help' for more|^\S+: (?:unrecognized|invalid|unknown) (?:option|argument|flag)|^npm (?:error|ERR!) (?:code (?:EUSAGE|EINVALIDTAGNAME|EINVAL\w*)|Unknown (?:command|cli config)|unknown command|Invalid (?:Version|version|package name|tag name))|invalid option -- |^error: unknown (?:option|command|flag|argument)|OptionParser::(?:Invalid|Missing|Ambiguous)|invalid option: -|option .* requires an argument|MSBUILD : error MSB100[1245678]\b|CS(?:1617|2007|1902|1675|8630)\b|error: unknown argument|Too many (?:positional )?arguments|unexpected (?:extra|positional) arguments?|unknown switch|unknown subcommand|Unknown subcommand|No such (?:option|command)\b",
        ),
    ],
);

/// A checker of links finds such answers.
const RUN: u8 = BUILD | TEST;

pub(super) const MISSING_RESOURCE: &[Rule] = &table(
    FEEDBACK,
    MISSING,
    [
        rule(
            "missing.named-file",
            r"(?i)\bno [`'\x22]?[\w./-]+\.(?:toml|json|xml|ya?ml|ninja|cfg|ini|py|gradle|mod|lock|cmake|am|ac)[`'\x22]? (?:file )?(?:was |were |could be )?(?:found|exists|in )|loading 'build\.ninja': |src refspec \S+ does not match any|does not (?:contain|have) (?:this|these|the) features?|Could not resolve entry module|Could not find or load main class|\bno \w+ (?:directory|folder) (?:in|found)\b|\bmissing (?:data|input|source|model|asset|fixture)s? \W?\w+\W?: |(?:required|input|source|data|schema|template|fixture|config(?:uration)?|settings|manifest) file .{0,80}(?:is missing|not found|missing)|\bconfig(?:uration)? (?:is|was|could) ?not (?:be )?found\b",
        ),
        rule(
            "missing.named",
            r"(?i)\b(?:role|task|target|recipe|script|scheme|workspace|stage|job|goal|command|subcommand|playbook|tag|profile|preset|environment|session|suite|step|pipeline|workflow|service|chart|formula|recipe) [`'\x22]?[^\s`'\x22]+[`'\x22]? (?:(?:was|is|could|does|do|can) ?not (?:be )?(?:found|exist|defined|known|located)|(?:does|do)n't exist|(?:is )?not (?:found|defined|known))\b",
        ),
        rule(
            "missing.manifest",
            r"(?i)could not (?:find|read|locate|open) (?:a |an |the |any )?[`'\x22]?(?:\S*/)?(?:Cargo\.toml|package\.json|pyproject\.toml|pom\.xml|go\.mod|Gemfile|composer\.json|build\.gradle\S*|CMakeLists\.txt|mix\.exs|Package\.swift|Makefile|tsconfig\S*|\S+\.csproj|deno\.jsonc?|setup\.py|Rakefile|Podfile|build\.zig)\b|(?:go\.mod file not found|cannot find (?:main module|go\.mod)|go: go\.mod file not found)|no such file or directory, open '\S*package\.json'|does not contain main module|(?:no|missing) (?:package\.json|Cargo\.toml|pom\.xml|pyproject\.toml|Makefile|go\.mod|composer\.json|manifest)(?: file)? (?:was |found|exists|in)|there is no POM in this directory|ERR_PNPM_NO_(?:IMPORTER_)?(?:PKG_)?MANIFEST|Couldn't find a package\.json|does not appear to contain (?:CMakeLists\.txt|a)|Neither 'setup\.py' nor 'pyproject\.toml' found|does not contain a Gradle build|does not (?:appear to be|look like) a (?:Python|Cargo|Node|valid) project|Could not locate Gemfile|Could not find a Mix\.Project|No Package\.swift|Neither .* nor build file|no build\.zig|Could not find (?:a )?(?:composer\.json|pubspec\.yaml)|No pubspec\.yaml|manifest path `\S+` does not exist|MSB100[39]\b|MSB1011|not within a (?:cabal|stack) project|No cabal file found|cannot find (?:a )?(?:Cargo\.toml|package\.json|project (?:file|root))|not a (?:bazel )?workspace|only supported from within a workspace|Missing build file|No targets specified and no makefile found|no Makefile found|No Rakefile found|No justfile found|Taskfile not found|no Taskfile|ERROR: Neither source directory|No such file or directory: '\S*(?:pyproject\.toml|setup\.py|package\.json)'",
        ),
        rule(
            "missing.script",
            r"(?i)missing script:?|ERR_PNPM_NO_SCRIPT|Command \x22\S+\x22 not found|Couldn't find a script named|error Command \S+ not found|Usage Error: Couldn't find|script \S+ (?:not found|does not exist|is not defined)|Script not found \x22|No script named|Task not found|task: Task \x22.*\x22 does not exist|Justfile does not contain recipe|Don't know how to build task|Task '\S+' (?:is ambiguous|not found) in|Cannot locate tasks? (?:that match )?'|Unknown lifecycle phase|The task \S+ (?:could not be found|does not exist)|There are no commands defined|Command \x22\S+\x22 is not defined|nox\.\S*no such session|unknown environment '|provided environments not found|Sessions? not found|hatch.*Unknown (?:script|environment)|Unknown (?:rake|invoke|grunt|gulp|mix) task|could not find task|Task never defined|Could not find gulpfile|npm (?:error|ERR!) workspace .* not found|No workspaces? found|No projects? (?:found|matched)",
        ),
        // A build graph names what is made from what, and one of it is not there.
        rule(
            "missing.prerequisite",
            r"\bMissingInput\w*|(?i:\bmissing input files?(?: ['`\x22/:(]| for\b))|(?i:\bdo(?:es)?(?: not|n't) know how to (?:make|build) )|(?i:\bno rule (?:found |available )?(?:for|to (?:make|build|redo|produce|create|generate))\b)|\bno rule (?:is )?available\b|(?i:\bsource [`'\x22][^'\x22]+['\x22] not found, needed by)|\bsource not found: |Dependent file '[^']+' does not exist|specifies (?:file|directory) '[^']+' which doesn't exist|\bExplicitly named file '|\bCannot find source file:",
        ),
        rule(
            "missing.target",
            r"No rule to make target|ninja: error: unknown target|ninja: error: '.*', needed by|no (?:such target|such package|bin target named|test target named|example target named|bench target named|library targets found)|did not match any packages|package `?\S+`? (?:is not a member of the workspace|not found in workspace|ID specification .* did not match)|error: package\(s\) `\S+` not found|no such (?:build )?target|unknown target|Target \x22\S+\x22 does not exist in the project|no target named|unknown (?:build )?step|no step named|does not have (?:a )?(?:target|task|scheme)|does not contain a scheme|\*\*\* (?:Keine Regel|Aucune règle pour|No hay ninguna regla|Nessuna regola per|(?:Sem|Não há|Nenhuma) regra para|Нет правила для|没有规则)|するルールがありません|No such module: \S+ in project|Could not find the selected project in the reactor",
        ),
        rule(
            "missing.package-npm",
            r"npm (?:error|ERR!) (?:code (?:E404|ETARGET|ENOVERSIONS)|404 |notarget )|ERR_PNPM_(?:FETCH_404|NO_MATCHING_VERSION|NO_VERSIONS)|Couldn't find (?:any versions|package) |No matching version found|YN0035|YN0082|error: No version matching|GET \S+ - 404|Package \x22\S+\x22 not found|is not in (?:this|the npm) registry|JSR package (?:manifest )?.*not found|Could not find npm package",
        ),
        rule(
            "missing.package-python",
            r"No matching distribution found|Could not find a version that satisfies|not found in the package registry|there (?:is|are) no versions? of \S+ ?(?:==|>=|<|~=)|no version of \S+|Unable to find installation candidates|doesn't match any versions|Package \S+ \S+ not found|PackagesNotFoundError|Because \S+ was not found|No versions? of \S+ (?:match|satisf)",
        ),
        rule(
            "missing.package-cargo",
            r"no matching package (?:named|found|for)|failed to select a version for the requirement|perhaps a crate was|could not find `\S+` in registry|candidate versions? found which didn't match|the package `\S+` depends on `\S+`, with features: .* but `|no matching version|cannot specify features|does not have (?:that|these|the) features?",
        ),
        rule(
            "missing.package-go",
            r"unknown revision|no matching versions for query|repository does not exist|unrecognized import path|module \S+: (?:reading|git ls-remote).*404|invalid version: ",
        ),
        rule(
            "missing.package-other",
            r"Could not find (?:artifact|gem|package|com\.|org\.|io\.|net\.|any version)|Could not find \S+:\S+:\S+|was not found in https?://|Unable to locate package|has no installation candidate|Version '.*' for '.*' was not found|Could not find gem|Could not find \S+ in (?:any of the sources|locally installed)|requires? .*, (?:it )?could not be found in any version|could not be found in any version|NU110[123]\b|Unable to find (?:a )?(?:package|version|stable package|image)|manifest (?:unknown|for \S+ not found)|pull access denied|image \S+ not found|No packages? (?:matching|found|provides?)|nothing provides|(?i:\bno provider (?:of|for)\b)|(?i:(?:unable to|could not|couldn't|cannot|can't) find \S+ (?:in|on|at) (?:any |the |all )?(?:of )?(?:the )?(?:remotes?|registr(?:y|ies)|repositor(?:y|ies)|index|channels?|mirrors?|sources)\b)|Unable to find a match|No match for argument|package .* (?:was|is) not found|unsatisfiable constraints|no formula|No available formula|target not found:|No such hex package|No package with name|[Pp]ackage '?\S+'? (?:not found|does not exist) in (?:the )?(?:registry|repository|index|channel)|could not find package|Failed to find package|unknown package:|No candidates? (?:found|for)|(?i:\bno (?:results?|packages?|versions?|releases?|modules?) (?:matching|match(?:es|ed)?|satisf\w+)\b)",
        ),
        rule(
            NO_MATCH,
            r"^(?:(?:zsh|bash|fish|-?t?csh): |\S+:\d+: |\S+ \(line \d+\): |\S+: line \d+: )?(?:no match(?:es found)?: |[Nn]o matches for wildcard )\S",
        ),
        rule(
            "missing.key",
            r"(?i)\bno (?:secret|private|signing) key\b",
        ),
        rule(
            "missing.git",
            r"pathspec '.*' did not match|couldn't find remote ref|[Rr]emote branch \S+ not found|(?i:repository '?\S+'? (?:not found|does not exist))|ERROR: Repository not found|not a git repository|(?i:\bnot (?:with)?in(?:side)? (?:of )?(?:an? |the |any )?(?:\w+ )?(?:check-?out|work(?:ing)? ?(?:copy|directory|tree)|repository|workspace)\b)|Kein Git-Repository|pas un dépôt git|(?:no es un repositorio|não é um repositório|non è un repository) git|bad revision|ambiguous argument '.*': unknown revision|unknown revision or path|invalid reference|not a valid (?:object name|ref|commit)|does not exist in '?HEAD|No such remote|does not appear to be a git repository|no such (?:ref|branch|commit|submodule)|not something we can merge|reference is not a tree|No stash entries found|No submodule mapping found|fatal: path '.*' does not exist|Your configuration specifies to merge with the ref",
        ),
        rule(
            "missing.tests",
            r"^ERROR: file or directory not found|^ERROR: not found: |(?i)\bno test(?:s)? (?:files? )?(?:found|were found|ran|executed|matched|to run|specified|matching)\b|No test suite found|no tests? (?:files? )?match|no tests were executed|NO TESTS RAN|No specs? (?:files? )?(?:found|were found)|No tests found in|Can't run because no spec files|Couldn't find any files to test|Could not find '.*\.[cm]?[jt]s'|collected 0 items$|No test is available in|No tests matching|Test file \x22.*\x22 (?:not found|does not exist)|Cannot open file \x22.*Test|no tests? to run|No such test|no such file .*test|neither a file nor a directory|Test \S+ not found|Test path .* does not exist|no feature files|didn't match any tests",
        ),
        rule(
            "missing.source-argument",
            r"^\S*(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|clang-\d+|tsc|ghc|rustc|swiftc): (?:fatal )?error: .*(?:[Nn]o such file|no input files)|no input files|error: couldn't read `?[^`:]+`?: |error: file not found: |javac?: file not found|cannot find file '|can't open (?:perl script|file) |Could not open input file|error TS(?:6053|5058|5057|5081)\b|(?:E902|io-error).*No such file|can't read file '|[Cc]annot read file: |[Ff]ile '[^']*' does not exist|No such file or directory \(LoadError\)|openBinaryFile: does not exist|openFile: does not exist|File not found:? |[Ee]rror: (?:Invalid value for )?.*Path '.*' does not exist|No files matching (?:the )?(?:given )?(?:pattern|path)|all of the files matching .* are ignored|No files matching|stat \S+: (?:no such file|directory not found)|no Go files in|matched no packages|error: (?:source|input) file .* (?:not found|does not exist)|Couldn't find (?:any )?(?:files?|sources?)|No (?:Python|source|input|lintable|such|TypeScript|matching) files? (?:or director(?:y|ies) )?(?:found|to|were|matched|under|present|are present)|error reading file '?\S+: No such|cannot access '|No inputs were found|no targets? (?:were )?specified|failed to read dockerfile|(?:Docker|Container)file: no such file|cannot load such file -- /",
        ),
        rule(
            "missing.node-entry",
            r"^\s*(?:Error: )?Cannot find module '/[^']+'$|Module not found \x22file:///[^\x22]+\x22\.?$|error: Module not found \x22(?:\./)?\S+\x22$",
        ),
        rule(
            "missing.file",
            r"^(?:\S*/)?(?:bash|sh|dash|zsh|cp|mv|cat|ls|rm|sed|awk|grep|tar|chmod|chown|source|install|ln|head|tail|diff|sort|touch|find|unzip|gzip|patch|cd|python[\d.]*|node|perl|ruby|php|go|stat|wc|xargs|rsync|make(?:\[\d+\])?)(?:: .+)?: .*(?:No such file or directory|Datei oder Verzeichnis nicht gefunden|Aucun fichier ou dossier|No existe el (?:fichero|archivo)|cannot stat)",
        ),
        rule(
            "missing.file-error",
            r"^(?:[\w.-]+: )?(?:error: )?(?i:(?:couldn't|could not|cannot|can't|unable to|failed to) (?:read|open|load|find|access|stat)) (?:\S+ ){0,3}.*: (?:[Nn]o such file or directory|not found)$|^\W*(?i:error|fatal)\b.*: [`'\x22]/?[\w.@-]+(?:/[\w.@-]+)*[`'\x22]: not found$|(?i:\b(?:spec|path|address|director(?:y|ies)|folder|files?|target)\b.{0,40} (?:does|do) not exist\b)|^(?:\S+: )?FileNotFoundError: |^(?:Uncaught )?(?:\[?Error:? ?)?.*\bENOENT: no such file or directory|Errno::ENOENT|java\.(?:io\.FileNotFound|nio\.file\.NoSuchFile)Exception|kind: NotFound, message|No such file or directory \(os error 2\)|^open \S+: no such file or directory|System\.IO\.(?:File|Directory)NotFoundException|(?i:^\W*(?:error|fatal|failed):? .*(?:no such file or directory|file (?:was )?not found|file does not exist|does not exist\b))",
        ),
        rule(
            "missing.http",
            r"404 Not Found|410 Gone|(?i:\bnot found: https?://)|(?:HTTP|ERROR|error|status|returned error|response|code)\S*:? (?:code )?404\b|404:? (?:Not Found|Client Error)|curl: \((?:22|37|78)\)|server responded with 404",
        )
        .at(RUN),
    ],
);
