//! Texts for git from a run's record: messages of commits, and title and body of a pull request, which are the same.

use super::markdown::{code, fenced, text};
use super::night::summary_of;
use super::to_look_at::given_up;
use super::words;
use crate::model::{AttemptOutcome, Change, IterationStatus, Run};
use crate::policy::changes::tampering_text;
use crate::policy::secrets::redact;
use crate::policy::text::beginning;

/// How long a subject is at most, in characters.
const LONGEST: usize = 72;

/// What a run was about, in a sentence: its prompt's first one, where it is short enough or nothing else says it, its task, or
/// what its only iteration did; else its name.
fn title(run: &Run) -> String {
    let prompt = run.spec.prompt.as_deref().map(first_sentence);
    let prompt = prompt.filter(|sentence| !sentence.is_empty());
    let task = run.task_id.as_ref().map(|task| task.as_str().to_owned());
    let mut passed = words::with_status(run, IterationStatus::Completed);
    let only = passed.next().filter(|_| passed.next().is_none());
    let said = only.and_then(|number| summary_of(run, number));
    let all = [prompt, task, said.as_deref().map(first_sentence)];
    let mut all = all.into_iter().flatten();
    let fits = |title: &String| title.chars().count() <= LONGEST;
    let title = all.clone().find(fits).or_else(|| all.next());
    title.unwrap_or_else(|| format!("Accept run {}", run.key.run_id))
}

/// The first sentence of a text, without what marks a heading or a list, and without its full stop.
fn first_sentence(text: &str) -> String {
    let line = text
        .lines()
        .map(|line| {
            line.trim_start_matches(['#', '-', '*', '>', ' ', '\t'])
                .trim()
        })
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let line = redact(line);
    let ends = |at: &usize| line[*at..].starts_with(['.', '!', '?', ':', ';']);
    let end = line
        .match_indices(' ')
        .map(|(at, _)| at.saturating_sub(1))
        .filter(|at| line.is_char_boundary(*at))
        .find(ends);
    let sentence = end.map_or(&*line, |at| &line[..=at]);
    sentence.trim_end_matches(['.', ':', ';']).to_owned()
}

/// A subject: `title`, cut between two words where it is too long, and, in its length, what comes after it.
fn subject(title: &str, after: &str) -> String {
    let room = LONGEST.saturating_sub(after.chars().count());
    let title = message_text(&words::line(title));
    format!("{}{after}", beginning(&title, room))
}

/// Others' words as `plain` writes them, with what a forge would act on as code, which it leaves alone: what closes an issue,
/// refers to one or mentions a user.
fn inert(words: &str, plain: &dyn Fn(&str) -> String) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut before: Vec<&str> = Vec::new();
    let flush = |before: &mut Vec<&str>, parts: &mut Vec<String>| {
        if !before.is_empty() {
            parts.push(plain(&before.join(" ")));
            before.clear();
        }
    };
    for word in words.split_whitespace() {
        let core = word.trim_matches(|c: char| !c.is_alphanumeric() && !"#@!/_-".contains(c));
        if !is_acted_on(core) {
            before.push(word);
            continue;
        }
        flush(&mut before, &mut parts);
        let (lead, trail) = word.split_once(core).unwrap_or_default();
        parts.push(format!("{}{}{}", plain(lead), code(core), plain(trail)));
    }
    flush(&mut before, &mut parts);
    parts.join(" ")
}

/// Whether a word is a reference or a mention: `#12`, `o/r#12`, `!12`, `GH-12`, `@name`, the address of an issue.
fn is_acted_on(word: &str) -> bool {
    let after = |mark: &str, is_meant: fn(char) -> bool| {
        let mut found = word.match_indices(mark);
        found.any(|(at, _)| word[at + mark.len()..].starts_with(is_meant))
    };
    let begins_name = |at: usize| !word[..at].ends_with(|c: char| c.is_alphanumeric());
    after("#", |c| c.is_ascii_digit())
        || after("!", |c| c.is_ascii_digit())
        || word.to_ascii_uppercase().starts_with("GH-")
        || ["/issues/", "/pull/", "/merge_requests/"]
            .iter()
            .any(|part| after(part, |c| c.is_ascii_digit()))
        || after("@", char::is_alphanumeric)
            && word.match_indices('@').any(|(at, _)| begins_name(at))
}

/// [`inert`] in a commit's message.
fn message_text(words: &str) -> String {
    inert(words, &str::to_owned)
}

/// [`inert`] in Markdown.
fn markdown_text(words: &str) -> String {
    inert(words, &text)
}

/// The title in the length of a subject.
pub(crate) fn headline(run: &Run) -> String {
    subject(&title(run), "")
}

/// What a commit is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    /// The run.
    pub run: &'a Run,
    /// The iteration, where a commit is of one.
    pub iteration: Option<u32>,
    /// Whether it is of files that its other commits left out.
    pub is_rest: bool,
    /// The text that was given.
    pub given: Option<&'a str>,
    /// Subjects of the commits that were folded into it, oldest first.
    pub folded: &'a [String],
}

/// The whole message; what was given stands as it is, but for the number of the iteration.
pub(crate) fn message(about: &Subject<'_>) -> String {
    let Subject {
        run,
        iteration,
        is_rest,
        given,
        folded,
    } = *about;
    let after = match iteration {
        Some(number) => format!(" (iteration {number})"),
        None if is_rest && given.is_none() => " (new files)".to_owned(),
        None => String::new(),
    };
    if let Some(given) = given {
        let (first, rest) = given.split_once('\n').unwrap_or((given, ""));
        return format!("{first}{after}\n{rest}");
    }
    let said = iteration.and_then(|number| summary_of(run, number));
    let said = said.map_or_else(|| title(run), |said| first_sentence(&said));
    let mut text = format!("{}\n\n", subject(&said, &after));
    for line in body(run, iteration, &message_text) {
        text.push_str(&line);
        text.push('\n');
    }
    if iteration.is_none() && !folded.is_empty() {
        text.push_str("\nWith the work of these commits:\n");
        for line in folded {
            text.push_str(&format!("- {}\n", message_text(&redact(line))));
        }
    }
    text.push_str(&format!("\nRecover-Run: {}\n", run.key.run_id));
    if let Some(number) = iteration {
        text.push_str(&format!("Recover-Iteration: {number}\n"));
    }
    text
}

/// What was done, a line an iteration, and the checks that passed on the last attempt; of all iterations or of one. `text` is
/// how others' words are written.
fn body(run: &Run, iteration: Option<u32>, text: &dyn Fn(&str) -> String) -> Vec<String> {
    let is_meant = |number: &u32| iteration.is_none_or(|iteration| iteration == *number);
    let done: Vec<String> = run
        .iterations
        .statuses()
        .filter(|(number, _)| is_meant(number))
        .filter_map(|(number, status)| match status {
            IterationStatus::Completed => Some((number, summary_of(run, number)?)),
            IterationStatus::Skipped => Some((number, given_up(run, number))),
            _ => None,
        })
        .map(|(number, what)| format!("- iteration {number}: {}", text(&what)))
        .collect();
    let mut lines = Vec::new();
    if iteration.is_none() {
        let of = |status| words::with_status(run, status).count();
        let left = words::given_up(of(IterationStatus::Skipped));
        let passed = of(IterationStatus::Completed);
        lines.push(format!("Iterations: {passed} passed{left}."));
    }
    lines.extend(done);
    let last = run.attempts().rfind(|(iteration, attempt)| {
        is_meant(&iteration.number) && attempt.outcome == Some(AttemptOutcome::Passed)
    });
    let passed = last
        .iter()
        .flat_map(|(_, attempt)| &attempt.feedback_results)
        .filter(|(_, result)| result.passed);
    let names: Vec<String> = passed.map(|(name, _)| text(name)).collect();
    if !names.is_empty() {
        lines.push(format!("Checks passed: {}.", names.join(", ")));
    }
    lines
}

/// This many files are listed.
const FILES: usize = 50;

/// What a person pastes, or `gh pr create` takes: title and body of the commit that `accept` makes, and the `changes` that it
/// commits.
pub(crate) fn pull_request(run: &Run, changes: &[Change]) -> String {
    let mut out = format!("{}\n\n", headline(run));
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    body(run, None, &markdown_text)
        .into_iter()
        .for_each(&mut line);
    let weakened = run.weakened_attempts().map(|(number, attempt)| {
        let notes = markdown_text(&tampering_text(&attempt.notes, ", "));
        format!("- iteration {number} may have weakened tests: {notes}")
    });
    let look_at: Vec<String> = weakened.collect();
    if !look_at.is_empty() {
        line("\n## To look at\n".to_owned());
        look_at.into_iter().for_each(&mut line);
    }
    if let Some(prompt) = &run.spec.prompt {
        line("\n## Task\n".to_owned());
        line(fenced("text", prompt.trim()));
    }
    if !changes.is_empty() {
        line("\n## Files\n".to_owned());
        for file in changes.iter().take(FILES) {
            let lines = match (file.added, file.deleted) {
                (Some(added), Some(deleted)) => format!(" (+{added} −{deleted})"),
                _ => String::new(),
            };
            line(format!("- {}{lines}", code(&file.path.to_lossy())));
        }
        let more = changes.len().saturating_sub(FILES);
        if more > 0 {
            line(format!("- and {more} more"));
        }
    }
    line(format!("\nRecover-Run: {}", run.key.run_id));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_closes_an_issue_or_calls_anybody() {
        let given = "Closes #12, fixes o/r#3; thanks @name (GH-4), me@example.com *bold* https://github.com/o/r/issues/5. C# 8 !";
        let message = "Closes `#12`, fixes `o/r#3`; thanks `@name` (`GH-4`), me@example.com *bold* \
                       `https://github.com/o/r/issues/5`. C# 8 !";
        assert_eq!(message_text(given), message);
        assert_eq!(markdown_text(given), message.replace('*', "\\*"));
        assert_eq!(subject("Fix #12", ""), "Fix `#12`");
    }

    #[test]
    fn a_subject_is_a_sentence_and_ends_with_a_whole_word() {
        for (prompt, sentence) in [
            ("# Add a parser\n\nIt reads TOML.", "Add a parser"),
            ("Fix the login. Then write tests for it.", "Fix the login"),
            ("Why does v1.2 fail? Find out", "Why does v1.2 fail?"),
            (
                "\n- Port it to Python 3.12\n- Test",
                "Port it to Python 3.12",
            ),
            ("Résumé: écrire", "Résumé"),
        ] {
            assert_eq!(first_sentence(prompt), sentence);
        }
        let long = "Rewrite the whole of the importer so that it reads compressed archives, too, and says where they break";
        let cut = subject(long, " (iteration 3)");
        assert!(cut.chars().count() <= LONGEST, "{cut}");
        let (kept, _) = cut.split_once('…').expect("it is cut");
        assert!(long.starts_with(&format!("{kept} ")), "{cut}");
        assert_eq!(subject(&"x".repeat(100), "").chars().count(), LONGEST);
    }
}
