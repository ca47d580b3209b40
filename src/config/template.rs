//! The commented file of `recover init`, and the reference of all keys.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::layers::{default_at, defaults};
use super::rights::{Owner, may_set};
use super::schema::{Key, SECTIONS, Section, Shape};
use crate::model::failure::Cause;
use crate::policy::settings::{CauseSettings, DelayKind};

const HEAD: &str = "\
# How `recover` supervises runs in this project.
#
# Every key is here with its default: remove the `#` directly before a key to change it, or write the key without the
# section's name below a header of your own, such as [retry], at the end of the file.
# A key goes before the preset and your own configuration (~/.config/recover/config.toml), and is itself overridden by a [task.\"NAME\"] section, the environment
# (RECOVER_MAX_ATTEMPTS, RECOVER_COOLDOWN, RECOVER_TIMEOUT, RECOVER_SAFE_MODE) and flags; `recover config --origins`
# shows which value is in force, and why.
# Durations read 500ms, 90s, 10m, 2h, 7d; sizes 100KiB, 50MiB, 10MB; \"none\" switches a limit off where it is allowed.
";

/// What matters to a growing delay only: taken for every cause, shown where the default delay grows.
const BOUNDS: [&str; 2] = ["base_delay", "max_delay"];

const TASKS: &str = "
# [task.\"NAME\"]
# Overrides for one task, from any section above. Lists replace those of the file.
#   [task.\"NAME\".retry]
#   max_attempts = 5
";

/// The text of a new `recover.toml`: every key with its default, commented out, and what it means.
///
/// Keys carry their section's name, so that each can be uncommented alone and a section can be appended to the file.
pub(crate) fn template() -> String {
    let defaults = defaults().unwrap_or_default();
    let mut text = HEAD.to_owned();
    for section in SECTIONS
        .iter()
        .filter(|section| may_set(Owner::Project, &section.path))
        .filter(|section| !section.keys.is_empty())
    {
        text.push('\n');
        match section.shape {
            Shape::Table => table(&mut text, section, &defaults),
            Shape::Causes => causes(&mut text, section, &defaults),
            Shape::List | Shape::Named => list(&mut text, section),
            Shape::Alias => alias(&mut text, section),
        }
    }
    text.push_str(TASKS);
    text
}

/// The files that a section may stand in.
fn files(section: &Section) -> &'static str {
    match (
        may_set(Owner::Project, &section.path),
        may_set(Owner::User, &section.path),
    ) {
        (true, true) => "In a project's file or the user's own.",
        (false, _) => "In the user's own file.",
        (true, false) => "In a project's file.",
    }
}

fn value(defaults: &Json, path: &str, key: &Key) -> String {
    key.kind.to_toml(default_at(defaults, path))
}

// Writing to a string does not fail.
fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(line);
    text.push('\n');
}

fn heading(text: &mut String, section: &Section) {
    line(
        text,
        format_args!("# {}\n# {}", section.title(), section.doc),
    );
}

fn table(text: &mut String, section: &Section, defaults: &Json) {
    let mut prefix = String::new();
    if !section.path.is_empty() {
        heading(text, section);
        prefix = format!("{}.", &section.path);
    }
    for key in section.keys.iter().filter(|key| key.alias_of.is_none()) {
        let path = format!("{prefix}{}", key.name);
        if !may_set(Owner::Project, &path) {
            continue;
        }
        line(
            text,
            format_args!("# {}\n#{path} = {}", key.doc, value(defaults, &path, key)),
        );
    }
}

/// What all causes have in common is explained once.
fn causes(text: &mut String, section: &Section, defaults: &Json) {
    heading(text, section);
    let keys = || section.keys.iter().filter(|key| key.alias_of.is_none());
    for key in keys().filter(|key| key.only.is_none()) {
        line(text, format_args!("# - {}: {}", key.name, key.doc));
    }
    for &cause in Cause::ALL {
        let path = format!("{}.{}", section.path, cause.as_str());
        let grows = CauseSettings::default_of(cause).delay == DelayKind::Exponential;
        for key in keys().filter(|key| {
            key.applies_to(Some(cause)) && (grows || !BOUNDS.contains(&key.name.as_str()))
        }) {
            if key.only.is_some() {
                line(text, format_args!("# {}", key.doc));
            }
            let path = format!("{path}.{}", key.name);
            line(
                text,
                format_args!("#{path} = {}", value(defaults, &path, key)),
            );
        }
    }
}

fn list(text: &mut String, section: &Section) {
    heading(text, section);
    line(text, format_args!("#   {}", section.title()));
    let shown = section
        .keys
        .iter()
        .filter_map(|key| Some((key, key.example.as_ref()?)));
    for (key, example) in shown {
        line(
            text,
            format_args!("#   # {}\n#   {} = {example}", key.doc, key.name),
        );
    }
}

fn alias(text: &mut String, section: &Section) {
    heading(text, section);
    for key in &section.keys {
        line(text, format_args!("# - {}: {}", key.name, key.doc));
    }
}

/// A section of the configuration, for the documentation.
#[derive(Clone, Debug)]
pub(crate) struct SectionReference {
    /// How its header is written.
    pub title: String,
    /// What it is about, and in which files it counts.
    pub doc: String,
    /// Its keys.
    pub keys: Vec<KeyReference>,
}

/// A key, for the documentation.
#[derive(Clone, Debug)]
pub(crate) struct KeyReference {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub takes: String,
    /// Its default, as it is written; empty where it has none.
    pub default: String,
    /// What it means.
    pub meaning: String,
}

/// All sections with all keys.
pub(crate) fn reference() -> Vec<SectionReference> {
    let defaults = defaults().unwrap_or_default();
    let of_key = |section: &Section, key: &'static Key| {
        let default = match section.shape {
            _ if key.alias_of.is_some() => String::new(),
            Shape::Alias => String::new(),
            Shape::List | Shape::Named => (if key.required { "required" } else { "" }).to_owned(),
            Shape::Causes if key.only.is_none() => "by cause".to_owned(),
            Shape::Causes => {
                let cause = key.only.map_or("", Cause::as_str);
                value(
                    &defaults,
                    &format!("{}.{cause}.{}", section.path, key.name),
                    key,
                )
            }
            Shape::Table if section.path.is_empty() => value(&defaults, &key.name, key),
            Shape::Table => value(&defaults, &format!("{}.{}", section.path, key.name), key),
        };
        let takes = key.kind.expected(key.optional);
        KeyReference {
            name: &key.name,
            takes,
            default,
            meaning: key.doc.clone(),
        }
    };
    let of_section = |section: &'static Section| SectionReference {
        title: section.title(),
        doc: format!("{} {}", section.doc, files(section))
            .trim()
            .to_owned(),
        keys: section
            .keys
            .iter()
            .map(|key| of_key(section, key))
            .collect(),
    };
    let told = SECTIONS.iter().filter(|section| !section.keys.is_empty());
    told.map(of_section).collect()
}

/// A way to be notified.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// What it uses.
    pub title: &'static str,
    /// The section, with places to fill in written in capitals.
    pub toml: &'static str,
}

/// The recipes. Each needs nothing but a shell and the program that it names.
pub const NOTIFY_RECIPES: [Recipe; 4] = [
    Recipe {
        title: "A push to your phone, by ntfy.sh or a server of your own",
        toml: r#"[notify]
command = '''
curl -fsS -m 8 -H "Title: recover: $RECOVER_EVENT" --data-raw "$RECOVER_SUMMARY" https://ntfy.sh/YOUR-TOPIC
'''
"#,
    },
    Recipe {
        title: "Slack, by an incoming webhook",
        toml: r#"[notify]
on = ["needs_person", "ended"]
command = '''
printf '%s\n' "$RECOVER_SUMMARY" | sed 's/[\\"]/\\&/g; s/.*/{"text": "&"}/' |
curl -fsS -m 8 -H 'Content-Type: application/json' --data-binary @- https://hooks.slack.com/services/YOUR/WEB/HOOK
'''
"#,
    },
    Recipe {
        title: "A desktop with notify-send",
        toml: r#"[notify]
command = 'notify-send --app-name=recover -- "recover: $RECOVER_EVENT" "$RECOVER_SUMMARY"'
"#,
    },
    Recipe {
        title: "Mail, with all that is known; the password stands in ~/.netrc",
        toml: r#"[notify]
on = ["needs_person", "ended"]
command = '''
{ printf 'From: YOU@EXAMPLE.COM\nTo: YOU@EXAMPLE.COM\nSubject: recover: %s\n' "$RECOVER_EVENT in run $RECOVER_RUN_ID"
  printf 'MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n'
  { printf '%s\n\n' "$RECOVER_SUMMARY"; cat; } | base64 | fold -w 76; } |
curl -fsS -m 8 --netrc-optional --crlf --mail-from YOU@EXAMPLE.COM --mail-rcpt YOU@EXAMPLE.COM -T - smtps://SMTP.EXAMPLE.COM
'''
"#,
    },
];
