//! The template, the reference, and the table of keys behind them.

use std::collections::BTreeSet;

use serde_json::json;

use super::super::*;
use super::{file, nothing, parse, read};

#[test]
fn the_template_says_nothing_until_it_is_uncommented_and_then_the_defaults() {
    let text = template();
    assert_eq!(read(&text), Settings::default());
    let uncommented: Vec<&str> = text
        .lines()
        .map(|line| uncomment(line).unwrap_or(line))
        .collect();
    let config = parse(file(), &uncommented.join("\n"), &nothing, None).unwrap();
    assert_eq!(config.settings, Settings::default());
    let bounds = |key: &str| {
        key.starts_with("retry.causes.")
            && (key.ends_with(".base_delay") || key.ends_with(".max_delay"))
    };
    let own = |key: &str| !rights::may_set(Owner::Project, key);
    let keys = config
        .origins()
        .into_iter()
        .filter(|entry| !entry.origin.is_explicit())
        .map(|entry| entry.key);
    let keys = keys.filter(|key| !own(key));
    let left: BTreeSet<_> = keys.filter(|key| !bounds(key)).collect();
    assert_eq!(
        left,
        BTreeSet::from(["feedback".to_owned(), "rule".to_owned()]),
        "keys that the template lacks"
    );
    assert!(text.lines().all(|line| !line.ends_with(' ')));
}

#[test]
fn one_key_of_the_template_or_a_section_at_its_end_is_enough() {
    let one = template().replace("#retry.max_attempts = 3", "retry.max_attempts = 5");
    assert_eq!(read(&one).retry.max_attempts, 5);
    let more =
        template() + "\n[retry]\nmax_attempts = 5\n[[feedback]]\nname = 'x'\ncommand = 'y'\n";
    assert_eq!(
        (read(&more).retry.max_attempts, read(&more).feedback.len()),
        (5, 1)
    );
}

/// Lines that are nearly a configuration.
const FRAGMENTS: &str = concat!(
    r#"((\[{0,2}(retry|task|feedback|rule|ä|"x"|[a-z]{1,4})(\.[a-z_]{1,9})?\]{0,2}"#,
    r"|(preset|max_delay|retry\.base_delay|name|command) ?= ?",
    r"('[^']{0,5}'|[0-9_+-]{1,25}|\[[0-9,]{0,4}\]|\{[a-z=0-9]{0,9}\})",
    r"|\PC{0,6})(\n|\r\n| )){0,12}",
);

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in FRAGMENTS) {
        if let Err(error) = parse(file(), &text, &nothing, Some(&"x".into())) {
            proptest::prop_assert!(error.line().is_some());
        }
    }
}

fn uncomment(line: &str) -> Option<&str> {
    line.strip_prefix('#')
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
}

#[test]
fn the_examples_of_the_template_are_valid() {
    let text = template();
    let examples: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("#   "))
        .collect();
    let config = parse(file(), &examples.join("\n"), &nothing, Some(&"NAME".into())).unwrap();
    assert_eq!(
        (config.settings.feedback.len(), config.settings.rules.len()),
        (1, 1)
    );
    assert_eq!(config.settings.retry.max_attempts, 5);
    let own = &config.agents().unwrap()["NAME"];
    assert_eq!(
        (
            own.program.as_str(),
            own.exit_codes.len(),
            own.has_sessions()
        ),
        ("mybot", 2, true)
    );
}

#[test]
fn every_word_of_every_choice_is_a_value() {
    for (path, key) in schema::leaves() {
        let Kind::Choice(words) = &key.kind else {
            continue;
        };
        for word in words {
            let mut config = parse(file(), "", &nothing, None).unwrap();
            let origin = Origin::Environment("NAME".to_owned());
            config.say(&path, word, origin).unwrap();
            let now = config
                .origins()
                .into_iter()
                .find(|entry| entry.key == path)
                .unwrap();
            let none = key.optional && *word == "none";
            assert_eq!(
                now.value,
                if none { json!(null) } else { json!(word) },
                "{path}"
            );
        }
    }
}

#[test]
fn the_reference_names_every_key() {
    let all = reference();
    // One that only has others below it has nothing to describe.
    let sections = || schema::SECTIONS.iter().filter(|one| !one.keys.is_empty());
    assert_eq!(all.len(), sections().count());
    for (section, described) in sections().zip(all) {
        assert_eq!(described.title, section.title());
        let names: Vec<&str> = described.keys.iter().map(|key| key.name).collect();
        assert_eq!(
            names,
            section
                .keys
                .iter()
                .map(|key| key.name.as_str())
                .collect::<Vec<_>>()
        );
        assert!(
            described
                .keys
                .iter()
                .all(|key| !key.meaning.is_empty() && !key.takes.is_empty()),
            "{described:?}"
        );
    }
}
