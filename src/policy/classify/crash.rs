//! How the runtimes of programs report what they died of: the line that names the error, among headers, frames and footers.

use std::sync::LazyLock;

use crate::model::failure::{EvidenceSource, Location};
use crate::policy::patterns::{Patterns, Single};
use crate::policy::text::{Line, Text, places};

/// Where the line that names the error is.
#[derive(Clone, Copy)]
enum Named {
    /// On the line that matches: the first group, else the whole line.
    Here,
    /// On the line that matches, where this begins one of the lines below.
    HereBefore(&'static str),
    /// On the first line below that is not indented.
    Below,
    /// On the line below where this matches it, after what the first group says.
    With(&'static Single),
    /// Above: on the nearest line that names an error, else on the nearest that says anything.
    Above,
}

/// How many lines are between a header or frame and the line that names the error.
const NEAR: usize = 8;

/// C++: what the exception says.
static WHAT: Single = Single::new(r"^\s+what\(\):\s+(.+)");

/// Lisp: what the condition says.
static CONDITION: Single = Single::new(r"^  (\S.+)");

/// A frame of Node, Deno, Bun, Java, Kotlin, Scala, .NET: what was called, and where.
const FRAME_PATTERN: &str = r"^(?:npm (?:error|ERR!))?\s+at (?:async )?(?:\S.*\(.*\)|\S*:\d+)";
static FRAME: Single = Single::new(FRAME_PATTERN);

/// Each runtime's own form; the last one that is found counts.
static FORMS: [(Single, Named); 23] = [
    // Python.
    (
        Single::new(r"^\s*(?:[+|] )?(?:Exception Group )?Traceback \(most recent call last\)"),
        Named::Below,
    ),
    (Single::new(r"^(Fatal Python error: .+)"), Named::Here),
    // Rust, before 1.73 and since.
    (
        Single::new(r"^thread '.*' panicked at '(.+)', \S+:\d+"),
        Named::Here,
    ),
    (
        Single::new(r"^thread '.*' (?:\(\d+\) )?panicked at \S+:\d+:\d+:$"),
        Named::Below,
    ),
    // Go.
    (
        Single::new(r"^((?:panic|fatal error): .+)"),
        Named::HereBefore("goroutine "),
    ),
    (Single::new(FRAME_PATTERN), Named::Above),
    (Single::new(r"^\(Use `node --trace-uncaught"), Named::Above),
    // Ruby.
    (
        Single::new(r"^\S+:\d+:in [`'].*': (.+)"),
        Named::HereBefore("\tfrom "),
    ),
    (
        Single::new(r"^\S+:\d+:in [`'].*': (.+ \([A-Z][\w:]*\))$"),
        Named::Here,
    ),
    // PHP.
    (
        Single::new(r"^(?:PHP )?Fatal error: +Uncaught (.+?)(?: in \S+:\d+)?$"),
        Named::Here,
    ),
    (
        Single::new(r"^(?:PHP )?(?:Fatal|Parse) error: +(.+) in \S+ on line \d+$"),
        Named::Here,
    ),
    // Perl.
    (
        Single::new(r"^(\S.*) at \S+\.(?:pl|pm|t|psgi) line \d+\.$"),
        Named::Here,
    ),
    // Elixir, Erlang.
    (Single::new(r"^\*\* (\([\w.]+\) .+)"), Named::Here),
    // Swift, OCaml.
    (
        Single::new(r"^\S+\.swift:\d+: (Fatal error: .+)"),
        Named::Here,
    ),
    (Single::new(r"^(Fatal error: exception .+)"), Named::Here),
    // C and C++.
    (
        Single::new(r"^terminate called after throwing an instance of '(.+)'"),
        Named::With(&WHAT),
    ),
    (
        Single::new(r"(?:uncaught exception of type|uncaught foreign exception) (.+)"),
        Named::Here,
    ),
    (
        Single::new(r"^\S+:\d+:\d+: (runtime error: .+)"),
        Named::Here,
    ),
    (
        Single::new(
            r"^(?:==\d+==\s?ERROR|WARNING): ((?:\w+Sanitizer): [\w -]+?)(?: on (?:unknown )?address .*| \(pid.*)?$",
        ),
        Named::Here,
    ),
    // Lua, Julia, Dart.
    (
        Single::new(r"^[\w.]+: (?:\S+:\d+: )?(.+)"),
        Named::HereBefore("stack traceback:"),
    ),
    (
        Single::new(r"^ERROR: (?:LoadError: )?(.+)"),
        Named::HereBefore("Stacktrace:"),
    ),
    // Lisp.
    (
        Single::new(r"^Unhandled ([A-Z][A-Z:-]+) in thread "),
        Named::With(&CONDITION),
    ),
    // Haskell, R.
    (
        Single::new(r"^CallStack \(from HasCallStack\):|^Execution halted"),
        Named::Above,
    ),
];

/// All forms in one pass: most lines have none.
static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| Patterns::new(patterns()));

/// The patterns that lines are matched against.
pub(super) fn patterns() -> impl Iterator<Item = &'static str> {
    FORMS.iter().map(|(form, _)| form.pattern())
}

/// What comes before an error's type.
static PREFIX: Single = Single::new(
    r"^\s*(?:npm (?:error|ERR!)\s+)?(?:(?:Exception in thread \x22[^\x22]*\x22|Unhandled [Ee]xception[.:]|(?:error: )?Uncaught(?: \(in promise\))?:?|Caused by:|\[cause\]:)\s+)+",
);
/// A line that names an error by its type.
static TYPED: Single = Single::new(
    r"^(?:[A-Za-z_$][\w$]*(?:\.|::))*[A-Za-z_$][\w$]*(?:[Ee]rror|[Ee]xception|Fault|Failure)\b|^[Ee]rror(?: \[\w+\])?: |^assert .*[=<>!]",
);
/// What is around it and says nothing itself: headers, versions, exit statuses, counts, frames.
static AROUND: Single = Single::new(
    r"^\s*(?:Node\.js v\d|Bun v\d|Deno \d|Traceback \(most recent|goroutine \d|note: run with `RUST_BACKTRACE|stack backtrace:|Stack trace:|Stacktrace:|stack traceback:|Stack trace was suppressed|#\d+ |thrown in |at (?:async )?\S+(?: ?\(|:\d+)|\.\.\. \d+ more|[\^~\s]+$|exit status \d+$|Execution halted|CallStack \(|core dumped|Aborted\b|terminate called|SUMMARY: \w+Sanitizer|thread '.*' panicked at \S+:\d+:\d+:$|Found \d+ errors?\b|\d+ errors? (?:generated|found)|Exception in thread \x22[^\x22]*\x22\s*$|(?:npm (?:error|ERR!)\s+)?[a-z_$][\w$]*: (?:'[^']*'|-?\d+),?$|BEGIN failed--|[*-] \S+$)",
);
/// A frame of Rust's, whose place stands below.
static NUMBERED: Single = Single::new(r"^\s+\d+: ");
/// What marks a place in the source that is printed above.
static MARK: Single = Single::new(r"^\s*\^[\^~]*\s*$");
/// An error as its runtime names it.
pub(super) struct Raised<'a> {
    /// The line that names it.
    pub line: Line<'a>,
    /// Type and text.
    pub text: String,
    /// Where it was raised, as far as the output shows.
    pub location: Option<Location>,
}

/// The error that a program died of, of its streams the first that says so, and which that is.
pub(super) fn raised_in(
    streams: [(EvidenceSource, &Text); 2],
) -> Option<(EvidenceSource, Raised<'_>)> {
    let mut streams = streams.into_iter();
    streams.find_map(|(source, text)| Some((source, raised(text)?)))
}

/// The last error of a stream that a runtime reports in its own form.
fn raised(text: &Text) -> Option<Raised<'_>> {
    let lines: Vec<Line<'_>> = text.lines().collect();
    (0..lines.len()).rev().find_map(|at| {
        let matched = PATTERNS.matches(lines[at].bytes);
        let found = |number: &u16| {
            let (form, named) = &FORMS[usize::from(*number)];
            let matched = form.first_in(lines[at].bytes)?;
            let group = matched
                .first_group()
                .map(|range| String::from_utf8_lossy(&lines[at].bytes[range]).into_owned());
            error_at(&lines, at, *named, group.as_deref()).filter(|raised| !is_around(&raised.text))
        };
        matched.iter().find_map(found)
    })
}

fn error_at<'a>(
    lines: &[Line<'a>],
    at: usize,
    named: Named,
    group: Option<&str>,
) -> Option<Raised<'a>> {
    let below = &lines[at + 1..];
    let near = &below[..below.len().min(NEAR)];
    let of = |index: usize, text: String, place: Option<Location>| Raised {
        line: lines[index],
        text: PREFIX.replace(&text, |_| String::new()).unwrap_or(text),
        location: place.or_else(|| place_in(&lines[index..lines.len().min(index + NEAR)])),
    };
    let here = || group.map_or_else(|| lines[at].to_text(), str::to_owned);
    match named {
        Named::Here => Some(of(at, here(), None)),
        Named::HereBefore(footer) => near
            .iter()
            .any(|line| line.bytes.starts_with(footer.as_bytes()))
            .then(|| of(at, here(), None)),
        Named::Below => {
            // The lines of a group of errors are drawn as a tree.
            let is_drawn = |byte: &u8| matches!(byte, b' ' | b'\t' | b'|' | b'+');
            let indented =
                |line: &Line<'_>| line.bytes.iter().take_while(|byte| is_drawn(byte)).count();
            let header = indented(&lines[at]);
            let is_error =
                |line: &Line<'_>| indented(line) <= header && !line.bytes.trim_ascii().is_empty();
            let found = at + 1 + below.iter().position(is_error)?;
            // Frames stand above it, the innermost last; a panic's header has the place.
            let place = lines[at..found]
                .iter()
                .rev()
                .find_map(|line| place_in(&[*line]));
            let said = lines[found].to_text();
            Some(of(
                found,
                said.trim_start_matches(['|', ' ']).to_owned(),
                place,
            ))
        }
        Named::With(more) => {
            let said = near.iter().find_map(|line| {
                let group = more.first_in(line.bytes)?.first_group()?;
                Some(String::from_utf8_lossy(&line.bytes[group]).into_owned())
            });
            let text = said.map_or_else(here, |said| format!("{}: {said}", here()));
            Some(of(at, text, None))
        }
        Named::Above => {
            let above = lines[..at].iter().enumerate().rev();
            let says = |line: &Line<'_>| {
                !line.bytes.trim_ascii().is_empty() && AROUND.first_in(line.bytes).is_none()
            };
            // Printed source has a mark below it.
            let is_source = |index: usize| MARK.first_in(lines[index + 1].bytes).is_some();
            let near: Vec<usize> = above
                .take(NEAR)
                .filter(|(index, line)| says(line) && !is_source(*index))
                .map(|(index, _)| index)
                .collect();
            // A frame's own line is no error; its header is right above the first one.
            let is_frame = |index: &&usize| FRAME.first_in(lines[**index].bytes).is_some();
            let typed = |index: &&usize| {
                let text = lines[**index].to_text();
                let bare = PREFIX.replace(&text, |_| String::new());
                bare.is_some_and(|bare| !bare.is_empty())
                    || TYPED.first_in(text.as_bytes()).is_some()
            };
            let near = near.split(|index| is_frame(&index)).next()?;
            let is_backtrace = |index: &usize| NUMBERED.first_in(lines[*index].bytes).is_some();
            if near.first().is_some_and(is_backtrace) {
                return None;
            }
            let found = *near.iter().find(typed).or(near.first())?;
            Some(of(found, lines[found].to_text(), None))
        }
    }
}

/// The first place that lines name.
fn place_in(lines: &[Line<'_>]) -> Option<Location> {
    lines
        .iter()
        .find_map(|line| places(&line.to_text()).into_iter().next())
}

/// Whether a message only stands around an error: it names none.
pub(super) fn is_around(message: &str) -> bool {
    AROUND.first_in(message.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        let forms = FORMS.iter().map(|(form, _)| form);
        for pattern in forms.chain([
            &WHAT, &CONDITION, &PREFIX, &TYPED, &AROUND, &NUMBERED, &MARK,
        ]) {
            assert!(pattern.compiles());
        }
    }

    /// What runtimes print, the error as they name it, and the place.
    #[test]
    fn the_error_is_named_among_its_frames() {
        const NODE: &str = "/w/a.js:2\nfunction load() { return undefined.name; }\n                ^\n\n\
            TypeError: Cannot read properties of undefined (reading 'name')\n    at load (/w/a.js:2:36)\n    \
            at Object.<anonymous> (/w/a.js:3:1)\n    at Module._compile (node:internal/modules/cjs/loader:1521:14)\n    \
            at a (b)\n    at a (b)\n    at a (b)\n    at a (b)\n    at a (b)\n    at a (b)\n    at a (b)\n\nNode.js v20.20.2\n";
        for (output, text, location) in [
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    f()\n  File \"b.py\", line 7, in f\n    \
                 raise ValueError(\"two\\nlines\")\nValueError: two\nlines\n",
                "ValueError: two",
                "b.py:7",
            ),
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    x[1]\nKeyError: 'moon'\n",
                "KeyError: 'moon'",
                "a.py:3",
            ),
            (
                "\nthread 'main' (23244) panicked at src/r.rs:1:75:\nindex out of bounds: the len is 0\nstack backtrace:\n   \
                 0: __rustc::rust_begin_unwind\n             at /rustc/59/library/std/src/panicking.rs:689:5\n   1: r::main\n\
                 note: Some details are omitted\n",
                "index out of bounds: the len is 0",
                "src/r.rs:1:75",
            ),
            (
                "thread 'main' panicked at 'the moon is late', src/main.rs:2:5\nnote: run with `RUST_BACKTRACE=1`\n",
                "the moon is late",
                "src/main.rs:2:5",
            ),
            (
                "panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\nmain.main()\n\t/w/main.go:8 +0x1d\nexit status 2\n",
                "panic: runtime error: index out of range [5] with length 3",
                "/w/main.go:8",
            ),
            (
                NODE,
                "TypeError: Cannot read properties of undefined (reading 'name')",
                "/w/a.js:2:36",
            ),
            (
                "/w/b.js:1\nthrow \"plain words\"\n^\nplain words\n(Use `node --trace-uncaught ...` to show where the exception was thrown)\n\nNode.js v20.20.2\n",
                "plain words",
                "",
            ),
            (
                "Error: wrapped\n    at f (file:///w/c.mjs:1:27)\n    at file:///w/c.mjs:2:7 {\n  [cause]: TypeError: inner thing\n      \
                 at f (file:///w/c.mjs:1:56)\n}\n\nNode.js v20.20.2\n",
                "TypeError: inner thing",
                "///w/c.mjs:1:56",
            ),
            (
                "error: Uncaught (in promise) Error: no moon\n    at file:///w/d.ts:3:9\n",
                "Error: no moon",
                "///w/d.ts:3:9",
            ),
            (
                "Exception in thread \"main\" java.lang.IllegalStateException: cannot load plugin\n\tat A.f(A.java:1)\n\tat A.main(A.java:3)\n\
                 Caused by: java.lang.NullPointerException: Cannot invoke \"String.length()\"\n\tat A.g(A.java:2)\n\t... 2 more\n",
                "java.lang.NullPointerException: Cannot invoke \"String.length()\"",
                "A.java:2",
            ),
            (
                "Unhandled exception. System.InvalidOperationException: no moon\n   at App.Main() in /w/App.cs:line 9\n",
                "System.InvalidOperationException: no moon",
                "",
            ),
            (
                "a.rb:1:in `f': undefined method `foo' for nil (NoMethodError)\n\tfrom a.rb:1:in `<main>'\n",
                "undefined method `foo' for nil (NoMethodError)",
                "a.rb:1",
            ),
            (
                "PHP Fatal error:  Uncaught RuntimeException: no moon in /w/a.php:3\nStack trace:\n#0 {main}\n  thrown in /w/a.php on line 3\n",
                "RuntimeException: no moon",
                "/w/a.php:3",
            ),
            ("no moon here at g.pl line 2.\n", "no moon here", ""),
            (
                "** (KeyError) key :moon not found in: %{}\n    lib/a.ex:3: A.f/0\n",
                "(KeyError) key :moon not found in: %{}",
                "lib/a.ex:3",
            ),
            (
                "terminate called after throwing an instance of 'std::out_of_range'\n  what():  no key: moon\nAborted\n",
                "std::out_of_range: no key: moon",
                "",
            ),
            (
                "====\n==23128==ERROR: AddressSanitizer: stack-buffer-overflow on address 0x7f at pc 0x5 bp 0x7\nREAD of size 4\n    #0 0x5 in main /w/e.c:1\n",
                "AddressSanitizer: stack-buffer-overflow",
                "/w/e.c:1",
            ),
            (
                "e.c:1:49: runtime error: index 5 out of bounds for type 'int [3]'\n",
                "runtime error: index 5 out of bounds for type 'int [3]'",
                "e.c:1:49",
            ),
            (
                "app/main.swift:3: Fatal error: Index out of range\n",
                "Fatal error: Index out of range",
                "app/main.swift:3",
            ),
            (
                "lua: a.lua:3: attempt to index a nil value\nstack traceback:\n\ta.lua:3: in main chunk\n",
                "attempt to index a nil value",
                "a.lua:3",
            ),
            (
                "app: no moon\nCallStack (from HasCallStack):\n  error, called at app.hs:3:5 in main:Main\n",
                "app: no moon",
                "",
            ),
        ] {
            let whole = Text::new(output.as_bytes());
            let found = raised(&whole).unwrap_or_else(|| panic!("{output}"));
            assert_eq!(found.text, text, "{output}");
            if !location.is_empty() {
                let place = found
                    .location
                    .unwrap_or_else(|| panic!("no place: {output}"));
                let column = place
                    .column
                    .map_or(String::new(), |column| format!(":{column}"));
                assert_eq!(
                    format!("{}:{}{column}", place.path, place.line),
                    location,
                    "{output}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_crash_names_none() {
        for output in [
            "",
            "Look at that\n  at the moon\n",
            "fatal error: x.h: No such file or directory\n",
            "ERROR: not a stack trace\n",
            "warning: unused variable\n --> src/a.rs:3:4\n",
            "test result: FAILED. 1 passed; 1 failed\n",
        ] {
            let whole = Text::new(output.as_bytes());
            assert!(raised(&whole).is_none(), "{output}");
        }
    }
}
