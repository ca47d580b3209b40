//! Locations in source files that a tool's output names, for an editor to open.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::failure::Location;

/// `File "a.py", line 3`; `a.ts(3,5)`; `a.rs:3:5`, `a.go:3`.
static FORMS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let forms = [
        r#"File "(?<path>[^"]+)", line (?<line>\d+)"#,
        r#"(?<path>[^\s"'`()\[\]<>,:]+)\((?<line>\d+)(?:,(?<column>\d+))?\)"#,
        r#"(?<path>[^\s"'`()\[\]<>,:]+):(?<line>\d+)(?::(?<column>\d+))?"#,
    ];
    forms
        .iter()
        .filter_map(|form| Regex::new(form).ok())
        .collect()
});

/// The places that a text names, in its order.
pub(crate) fn places(text: &str) -> Vec<Location> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut here: Vec<(usize, Location)> = Vec::new();
        for captures in FORMS.iter().flat_map(|form| form.captures_iter(line)) {
            let number = |name| {
                captures
                    .name(name)
                    .and_then(|digits| digits.as_str().parse().ok())
            };
            let (Some(path), Some(line)) = (captures.name("path"), number("line")) else {
                continue;
            };
            let place = Location {
                path: path.as_str().to_owned(),
                line,
                column: number("column"),
            };
            here.push((path.start(), place));
        }
        here.sort_by_key(|(at, _)| *at);
        found.extend(here.into_iter().map(|(_, place)| place));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_common_tools_are_read() {
        for (text, path, line, column) in [
            ("  --> src/main.rs:12:5", "src/main.rs", 12, Some(5)),
            (
                "src/auth.ts(23,5): error TS2322: Type",
                "src/auth.ts",
                23,
                Some(5),
            ),
            (
                "src/auth.ts:23:5 - error TS2322",
                "src/auth.ts",
                23,
                Some(5),
            ),
            (
                "  File \"/w/app.py\", line 7, in main",
                "/w/app.py",
                7,
                None,
            ),
            ("    main_test.go:14: want 1", "main_test.go", 14, None),
            (
                "thread 'a' panicked at src/lib.rs:3:9:",
                "src/lib.rs",
                3,
                Some(9),
            ),
            ("    at f (/w/a.js:4:2)", "/w/a.js", 4, Some(2)),
            (
                "E   tests/test_a.py:9: AssertionError",
                "tests/test_a.py",
                9,
                None,
            ),
        ] {
            let place = Location {
                path: path.to_owned(),
                line,
                column,
            };
            assert_eq!(places(text).first(), Some(&place), "{text}");
        }
        assert_eq!(
            places("no place: at all, 12:30"),
            [Location {
                path: "12".to_owned(),
                line: 30,
                column: None
            }]
        );
        let two = places("a.c:1: x\nb.c:2: y");
        assert_eq!(
            two.iter()
                .map(|place| place.path.as_str())
                .collect::<Vec<_>>(),
            ["a.c", "b.c"]
        );
    }
}
