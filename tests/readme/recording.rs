//! The pictures of the README: a session on a terminal, remade and compared with what is committed.

use std::fmt::Write as _;
use std::fs;

use regex::Regex;
use vt100::{Color, Parser};

use super::env::TestEnv;
use super::terminal::Terminal;
use super::{root, text};

const COLUMNS: u16 = 80;
const ROWS: u16 = 33;
/// In pixels.
const CELL: (f64, f64) = (8.4, 18.0);
const MARGIN: f64 = 14.0;
const BACKGROUND: &str = "#1c1f26";
const FOREGROUND: &str = "#d5d8de";

/// What the terminal shows for a while.
struct Shot {
    /// Each line as an SVG has it.
    lines: Vec<String>,
    /// How long, in seconds.
    seconds: f64,
}

/// A project, and what an agent does to it: at first it breaks a check and leaves something behind.
fn project() -> TestEnv {
    let mut env = TestEnv::repo();
    env.script(
        "check.sh",
        "grep -qx works app.txt || { echo 'FAILED app: it does not work'; exit 1; }",
    );
    let agent = "if [ $RECOVER_ATTEMPT = 1 ]; then echo broken > app.txt; touch junk; \
                 else echo works > app.txt; echo '- it is fast' >> notes.txt; fi";
    env.script("agent.sh", agent);
    env.write("app.txt", "works\n");
    env.write("notes.txt", "# Notes\n");
    env.git(&["add", "."]);
    env.git(&["commit", "-q", "-m", "app"]);
    env.set("GIT_PAGER", "cat");
    env
}

/// What is another each time: how long something took, ids of commits, where the project is.
fn settled(said: &str, env: &TestEnv) -> String {
    let said = said.replace(&env.work().to_string_lossy().into_owned(), "~/project");
    let took = Regex::new(r"\b\d+(\.\d+)?( ?)m?s([,;)\n\r])").expect("a pattern");
    let size = Regex::new(r"\b\d+\.\d KiB").expect("a pattern");
    let id = Regex::new(r"\b[0-9a-f]{10}\b").expect("a pattern");
    let said = size.replace_all(&said, "8.2 KiB");
    id.replace_all(&took.replace_all(&said, "0.2${2}s$3"), "4f1c2a9b7e")
        .into_owned()
}

/// A line of the terminal: pieces that look the same, each where it begins.
fn line(screen: &vt100::Screen, row: u16) -> String {
    let mut pieces: Vec<(u16, String, String)> = Vec::new();
    for column in 0..COLUMNS {
        let Some(cell) = screen
            .cell(row, column)
            .filter(|cell| !cell.is_wide_continuation())
        else {
            continue;
        };
        let mut class = match cell.fgcolor() {
            Color::Idx(number @ (1..=6 | 9..=14)) => format!("c{}", number % 8),
            _ => String::new(),
        };
        for (set, name) in [
            (cell.bold(), " b"),
            (cell.dim(), " d"),
            (cell.inverse(), " i"),
        ] {
            class.push_str(if set { name } else { "" });
        }
        let content = if cell.has_contents() {
            cell.contents()
        } else {
            " "
        };
        match pieces.last_mut() {
            Some((_, last, text)) if *last == class => text.push_str(content),
            _ => pieces.push((column, class, content.to_owned())),
        }
    }
    let (left, height) = CELL;
    let y = MARGIN + height * f64::from(row);
    let mut svg = String::new();
    for (column, class, text) in pieces {
        let (x, count) = (MARGIN + left * f64::from(column), text.chars().count());
        let inverse = class.contains(" i");
        let text = if inverse {
            text.as_str()
        } else {
            text.trim_end()
        };
        if text.is_empty() {
            continue;
        }
        if inverse {
            let wide = left * count as f64;
            let _ = write!(
                svg,
                r#"<rect x="{x:.1}" y="{y:.1}" width="{wide:.1}" height="{height}" class="s"/>"#
            );
        }
        let escaped = text
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        let class = if class.is_empty() {
            String::new()
        } else {
            format!(r#" class="{}""#, class.trim())
        };
        let base = y + height * 0.75;
        let wide = left * text.chars().count() as f64;
        let _ = write!(
            svg,
            r#"<text x="{x:.1}" y="{base:.1}" textLength="{wide:.1}"{class}>{escaped}</text>"#
        );
    }
    svg
}

fn shot(parser: &Parser, seconds: f64) -> Shot {
    let lines = (0..ROWS)
        .map(|row| line(parser.screen(), row))
        .filter(|line| !line.is_empty())
        .collect();
    Shot { lines, seconds }
}

/// The picture; with more than one shot they follow each other, and begin anew.
fn svg(title: &str, shots: &[Shot]) -> String {
    let (width, height) = (
        CELL.0 * f64::from(COLUMNS) + 2.0 * MARGIN,
        CELL.1 * f64::from(ROWS) + 2.0 * MARGIN,
    );
    let all: f64 = shots.iter().map(|shot| shot.seconds).sum();
    let mut style = String::from(
        "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre;fill:#d5d8de}\
         .b{font-weight:bold}.d{opacity:.6}.s{fill:#d5d8de}.i{fill:#1c1f26}\
         .c1{fill:#f07178}.c2{fill:#a5d977}.c3{fill:#ffcb6b}.c4{fill:#82aaff}.c5{fill:#c792ea}.c6{fill:#7fdbe6}",
    );
    let mut body = String::new();
    let mut begins = 0.0;
    for (number, shot) in shots.iter().enumerate() {
        let ends = begins + shot.seconds;
        let is_last = number + 1 == shots.len();
        if shots.len() > 1 {
            let (from, to) = (begins / all * 100.0, ends / all * 100.0);
            // Whoever wants nothing to move sees the end.
            let still = if is_last { "visible" } else { "hidden" };
            let _ = write!(
                style,
                "\n.f{number}{{visibility:{still};animation:f{number} {all:.1}s step-end infinite}}"
            );
            let before = if number == 0 {
                String::new()
            } else {
                "0%{visibility:hidden}".to_owned()
            };
            let after = if is_last {
                String::new()
            } else {
                format!("{to:.2}%{{visibility:hidden}}")
            };
            let _ = write!(
                style,
                "@keyframes f{number}{{{before}{from:.2}%{{visibility:visible}}{after}}}"
            );
        }
        let _ = write!(
            body,
            "<g class=\"f{number}\">\n{}\n</g>\n",
            shot.lines.join("\n")
        );
        begins = ends;
    }
    if shots.len() > 1 {
        style.push_str("\n@media (prefers-reduced-motion:reduce){g{animation:none!important}}");
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" xml:space=\"preserve\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" role=\"img\">\n\
         <title>{title}</title>\n<style>{style}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n{body}</svg>\n"
    )
    .replace("#d5d8de", FOREGROUND)
}

/// Compares with what is committed, or writes it.
fn compare(path: &str, made: &str) {
    if std::env::var_os("RECOVER_TEST_REFRESH").is_some() {
        fs::create_dir_all(root().join("docs")).expect("a folder");
        fs::write(root().join(path), made).expect("written");
        return;
    }
    for (line, expected) in text(path).lines().zip(made.lines()) {
        assert_eq!(
            line, expected,
            "{path}: refresh it with: RECOVER_TEST_REFRESH=1 cargo test --test readme recording"
        );
    }
    assert_eq!(text(path).lines().count(), made.lines().count(), "{path}");
}

/// A command of the recording: when, on a screen that was cleared or below what came before, its words, and for how long its
/// end is shown. What asks whether to do it gets a yes.
type Step = (&'static str, bool, &'static str, f64);

const SESSION: &[Step] = &[
    (
        "01:12:00",
        true,
        "recover run --run night --no-wait --feedback test=./check.sh -- ./agent.sh",
        5.0,
    ),
    ("07:30:00", true, "recover", 6.0),
    (
        "07:31:00",
        true,
        "recover checkpoint diff good --patch",
        4.0,
    ),
    ("07:32:00", false, "recover rollback --to good", 5.0),
    ("07:33:00", false, "recover undo", 3.0),
    (
        "07:34:00",
        true,
        "recover resume --strategy rollback_and_retry",
        5.0,
    ),
    (
        "07:40:00",
        false,
        "recover accept -m 'Say that it is fast'",
        6.0,
    ),
];

#[test]
fn the_recording_is_what_the_program_shows() {
    let mut env = project();
    let mut parser = Parser::new(ROWS, COLUMNS, 0);
    let mut shots = Vec::new();
    for (time, clears, command, seconds) in SESSION {
        parser.process(if *clears { b"\x1b[H\x1b[2J" } else { b"" });
        parser.process(format!("\x1b[32m$\x1b[0m {command}").as_bytes());
        shots.push(shot(&parser, 1.2));
        env.set("RECOVER_TEST_NOW", &format!("2026-01-05T{time}.000Z"));
        let words = shlex::split(command).expect("words");
        let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        let Some(mut terminal) = Terminal::with(&env, &words, (COLUMNS, ROWS), &[]) else {
            return;
        };
        if words.first() == Some(&"rollback") {
            terminal.expect("Continue?");
            terminal.press("y");
        }
        let (_, said) = terminal.end();
        parser.process(
            settled(&format!("\n{said}"), &env)
                .replace('\n', "\r\n")
                .as_bytes(),
        );
        shots.push(shot(&parser, *seconds));
    }
    compare(
        "docs/recording.svg",
        &svg(
            "recover: a run that fails, is explained, rolled back, undone and accepted",
            &shots,
        ),
    );
}

#[test]
fn the_picture_of_browse_is_what_it_shows() {
    let mut env = project();
    env.set("RECOVER_TEST_NOW", "2026-01-05T01:12:00.000Z");
    let run = "run --run night --iterations 3 --attempts 2 --no-wait --feedback test=./check.sh -- ./agent.sh";
    let line = format!("'{}' {run}; true", env!("CARGO_BIN_EXE_recover"));
    env.sh(&line);
    env.set("RECOVER_TEST_NOW", "2026-01-05T07:30:00.000Z");
    env.recover(&["resume", "--strategy", "rollback_and_retry"]);
    env.set("RECOVER_TEST_NOW", "2026-01-05T07:45:00.000Z");
    let size = (COLUMNS, ROWS);
    let Some(terminal) = Terminal::with(&env, &["browse"], size, &[]) else {
        return;
    };
    let mut terminal = terminal.drawing();
    terminal.expect_shown(size, "Run night");
    terminal.press("/attempt 1 failed\r2");
    terminal.expect_shown(size, "+broken");
    let mut parser = Parser::new(ROWS, COLUMNS, 0);
    parser.process(settled(&terminal.said(), &env).as_bytes());
    let picture = svg(
        "recover browse: a run's attempts and checkpoints, and what the first attempt changed",
        &[shot(&parser, 0.0)],
    );
    terminal.press("q");
    terminal.end();
    compare("docs/browse.svg", &picture);
}
