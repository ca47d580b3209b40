//! A tool refuses a flag, an option or a configuration value, so nothing was checked.

use super::rule::{BUILD, LINT, Rule, TEST, TYPECHECK, rule};
use crate::policy::classify::verdict::INVALID;

const FEEDBACK: u8 = BUILD | TEST | LINT | TYPECHECK;

pub(super) const RULES: &[Rule] = &[
    rule(
        "input.argparse",
        FEEDBACK,
        r"\berror: (?:unrecognized arguments|invalid choice|argument \S+: (?:invalid|expected|not allowed)|the following arguments are required|ambiguous option|no such option|expected (?:one|at least one) argument)|: error: .*: (?:invalid \S+ value|expected one argument)",
        INVALID,
    ),
    rule(
        "input.unexpected-argument",
        FEEDBACK,
        r"^error: (?:unexpected argument|invalid value '|unrecognized (?:subcommand|option)|unexpected value|the argument '|a value is required|equal sign is needed|the following required arguments|invalid type: .*argument|Unrecognized option|found argument)|^error: (?:one or more )?required arguments? ",
        INVALID,
    ),
    rule(
        "input.option",
        FEEDBACK,
        r"(?i)(?:^|[:;>] *|\] )['\x22]?(?:error:? )?(?:unknown|unrecogni[sz]ed|invalid|illegal|unsupported|unexpected|bad|undefined|ambiguous|no such) (?:command[- ]line |command |build |cli |long |short |global )?(?:options?|flags?|arguments?|switch(?:es)?|parameters?)\b(?: ?[:=`'\x22(]| -|$| \S+$| given| passed|s? -| provided|\.| name\b)",
        INVALID,
    ),
    rule(
        "input.option-after",
        FEEDBACK,
        r"(?i)(?:option|flag|argument|parameter|switch) ['`\x22]?-[\w=-]+['`\x22]? (?:is (?:not (?:recogni[sz]ed|supported|valid|known|defined|allowed)|unknown|invalid|unrecogni[sz]ed|ambiguous|deprecated and)|does not exist|requires (?:an? )?(?:argument|value)|not (?:found|recogni[sz]ed|defined|supported)|needs an argument|cannot be used|expects)",
        INVALID,
    ),
    rule(
        "input.go-flag",
        FEEDBACK,
        r"\b(?:flag|option|argument) error: |flag provided but not defined|flag needs an argument|unknown (?:shorthand )?flag|invalid (?:boolean )?(?:value|argument) \S+ for (?:flag )?\S*-",
        INVALID,
    ),
    rule(
        "input.click",
        FEEDBACK,
        r"^Error: (?:No such option|Got unexpected extra argument|Invalid value for (?:'?-|'?--)|Option '?-|Missing (?:option|argument|parameter))",
        INVALID,
    ),
    rule(
        "input.click-value",
        FEEDBACK,
        r"^Error: Invalid value: |^Error: Invalid value for '\S+': (?:[^P]|P[^a]|Pa[^t])",
        INVALID,
    ),
    rule(
        "input.compiler-option",
        FEEDBACK,
        r"unrecognized command[- ]line option|unknown argument: '-|unsupported (?:option|argument) '-|error: Unrecognized option|javac: invalid (?:flag|target release|source release)|error: (?:invalid (?:source|target) release|release version \d+ not supported|invalid flag)|Unrecognized VM option|Unrecognized option: -|scalac error: bad option|bad option: -|kotlinc?.*unsupported (?:plugin )?option|unknown warning option|unknown (?:codegen|debugging|unstable) option|error: unknown (?:target triple|target CPU|codegen option)|error: .*is not a valid (?:value|target triple|option|edition)|invalid value '.*' (?:in|for) '-|-W\w+ is not (?:valid|recognized)|invalid argument '.*' to |error: -\S+ (?:requires|is not supported|can only be)",
        INVALID,
    ),
    rule(
        "input.tsc-config",
        FEEDBACK,
        r"error TS(?:50[0-46-9]\d|505[0-69]|508[024-9]|5[1-9]\d\d|6046|6044|6064|6304|6306|6310|6266|6369|18003|17004)\b",
        INVALID,
    ),
    rule(
        "input.eslint-config",
        FEEDBACK,
        r"(?i)^\W*(?:Error: )?(?:ESLint configuration (?:in .* )?is invalid|Invalid option '-|Key \x22.*\x22: |Could not find (?:config|plugin) \x22|A config object is using|ESLint couldn't find (?:the (?:config|plugin)|an eslint\.config|a configuration file)|Failed to load (?:config|plugin)|Cannot read config file|Error: Unexpected (?:key|top-level property)|TypeError: Key \x22|ConfigError)|Definition for rule '.*' not found|Configuration for rule \x22.*\x22 is invalid|Oops! Something went wrong!.*config",
        INVALID,
    ),
    rule(
        "input.pytest-config",
        FEEDBACK,
        r"^(?:ERROR: |E\s+)?(?:pytest\.PytestConfigWarning|Unknown config option|.*pytest\.ini:\d+: |usage: pytest|.*: error: (?:unrecognized|argument|ambiguous))|not found in `markers` configuration|UsageError: |^ERROR: (?:invalid|Unknown|Wrong|usage:)",
        INVALID,
    ),
    rule(
        "input.config-file",
        FEEDBACK,
        r"(?i)\b(?:invalid|bad|malformed|unknown|unrecogni[sz]ed|unexpected|unsupported|incorrect|illegal|wrong) (?:\S+ )?(?:config(?:uration)?|settings?|options? in (?:the )?config)(?: (?:file|value|option|key|setting|object|property|field|for|in|entry|version|format))|(?:config(?:uration)?|settings)(?: file)? (?:\S+ )?(?:is|are) (?:invalid|malformed|not valid)|^\W*invalid configuration:?$|unsupported version of the configuration|can't load config|(?:failed|unable|error|could not|cannot|couldn't) (?:to )?(?:read|load|reading|loading|parse|parsing|validate|validating) (?:the )?(?:\S+ )?(?:config(?:uration)?|settings)\b|config(?:uration)? (?:error|invalid|validation (?:error|failed))|error in (?:the )?config(?:uration)?|configuration resulted in errors|no checks enabled|not a valid (?:config|configuration|setting|preset|reporter|value for)|Unknown (?:config|configuration|setting|rule|cop|reporter|preset|environment|engine|key|property|field)\b.*(?:config|in \S+\.\w+|\.(?:toml|ya?ml|json|cfg|ini|js)\b)|unknown (?:field|key|variant|rule selector|linters?|rule|cop|check|codes?)\b.*(?:expected|`|:|'|\x22)|Invalid rule selector|unrecognized (?:cop|rule|check)",
        INVALID,
    ),
    rule(
        "input.given",
        FEEDBACK,
        r"(?i)\b(?:supplied|given|passed|provided) (?:to|for|in|as) (?:the )?['`\x22]?[\w.-]+['`\x22]? (?:option|setting|parameter|argument|flag)\b",
        INVALID,
    ),
    // A configuration that is checked against its schema; where something is checked, that is its business.
    rule(
        "input.schema",
        BUILD,
        r"(?i)\badditional propert(?:y|ies)\b.{0,60}\b(?:not allowed|not permitted|invalid|not expected)|\b(?:unrecogni[sz]ed|unknown|unsupported|unexpected|extraneous) (?:(?:top-level|root|configuration|config) )?(?:propert(?:y|ies)|keys?|sections?|settings?)\b ?(?:[:='`\x22(]|\S+ (?:in|at|found)\b)",
        INVALID,
    ),
    rule(
        "input.jest-config",
        FEEDBACK,
        r"Validation Error:|Validation Warning:.*error|Unrecognized CLI Parameter|Invalid configuration object|has been initialized using a configuration object that does not match|Module .* in the .* option was not found|Preset .* not found|Unknown option \x22",
        INVALID,
    ),
    rule(
        "input.usage",
        FEEDBACK,
        r"(?i)^\W*(?:error: |fatal: |\S+: )?(?:invalid|unknown|unrecogni[sz]ed|bad|illegal|missing|unsupported) (?:(?:usage|invocation|argument|option|operand|parameter|format|log level|reporter|formatter|style|profile|edition|generator|preset|target triple|language standard|platform|environment variable|regex|regular expression|glob|subcommand|command line)\b|(?:value|mode|level|number|pattern)(?:s? ?[:='`\x22(]| (?:for|of|given|passed|specified|in)\b|\W*$))",
        INVALID,
    ),
    rule(
        "input.value",
        FEEDBACK,
        r"(?i)\b(?:invalid|illegal|bad|unsupported|unexpected) value (?:['`\x22].*['`\x22] )?(?:for|of|given|passed|supplied|provided|in)\b|\b(?:config(?:uration)?|option|setting|parameter|argument|flag)s?\b.{0,60}\bmust (?:be|not be|have)\b|\bmust be (?:one of|an? (?:positive |non-negative )?(?:integer|number|boolean|string|array|object))\b|expected (?:one of|an? (?:integer|number|boolean|string|array|object)) .*(?:option|config|setting)|is not (?:a valid|an allowed|one of the allowed) (?:choice|value|option)(?:$|[.!:;,(\[]| for\b| \()|cannot (?:both )?be (?:used|combined|specified) (?:together|with|at the same)|(?:are|is) mutually exclusive|allowed (?:values|choices) (?:are|:)|valid (?:values|choices|options) (?:are|include)\b|choose from ",
        INVALID,
    ),
    rule(
        "input.cmake",
        FEEDBACK,
        r"CMake Error: (?:Could not create named generator|Unknown argument|Parse error in command line|The source directory .* specified|Invalid)|CMake Error: Unknown|No such preset|Could not read presets|No preset|meson.*ERROR: Unknown options?|ERROR: Unknown options?:|ERROR: Value .* for option|configure: error: (?:unrecognized|invalid|unknown) (?:option|feature|package|host|variable)|ninja: (?:error|fatal): (?:invalid|unknown) (?:option|tool|flag|argument|-)|^configure: error: .*invalid",
        INVALID,
    ),
    rule(
        "input.maven-gradle",
        FEEDBACK,
        r"Unable to parse command line options|Unknown command-line option|Unknown lifecycle option|The parameters .* are (?:missing or )?invalid|Cannot (?:set|convert) (?:the )?(?:property|value|string)|Problem configuring task|Unrecognized (?:JVM |VM )?option|No argument was provided for command-line option|Unknown project property|The requested profile .* could not be activated",
        INVALID,
    ),
    rule(
        "input.misc",
        FEEDBACK,
        r"(?i)^(?:\S+: )?(?:illegal|invalid|unrecognized|unknown) option\b|^try '.* --help' for more|^\S+: (?:unrecognized|invalid|unknown) (?:option|argument|flag)|^npm (?:error|ERR!) (?:code (?:EUSAGE|EINVALIDTAGNAME|EINVAL\w*)|Unknown (?:command|cli config)|unknown command|Invalid (?:Version|version|package name|tag name))|invalid option -- |^error: unknown (?:option|command|flag|argument)|OptionParser::(?:Invalid|Missing|Ambiguous)|invalid option: -|option .* requires an argument|MSBUILD : error MSB100[1245678]\b|CS(?:1617|2007|1902|1675|8630)\b|error: unknown argument|Too many (?:positional )?arguments|unexpected (?:extra|positional) arguments?|unknown switch|unknown subcommand|Unknown subcommand|No such (?:option|command)\b",
        INVALID,
    ),
];
