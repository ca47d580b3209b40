//! Commands that an error or a view tells to copy.

use std::path::Path;

use crate::model::folder::shell_word;
use crate::model::run::RunKey;

use super::Context;

impl Context {
    /// A command that can be copied and works from any folder.
    pub fn hint_command(&self, key: Option<&RunKey>, words: &[&str]) -> String {
        self.hint_command_at(&self.worktree, key, words)
    }

    /// The same for a folder of its own.
    pub fn hint_command_at(&self, folder: &Path, key: Option<&RunKey>, words: &[&str]) -> String {
        let mut all: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        if let Some(key) = key {
            all.extend(key.flags());
        }
        self.line(folder, &all)
    }

    /// `recover`, where it is to work, and these words, as a line for a shell.
    fn line(&self, folder: &Path, words: &[String]) -> String {
        let mut line = format!("recover -C {}", shell_word(folder));
        if self.setup.state_dir.is_some() {
            line.push_str(&format!(" --state-dir {}", shell_word(self.store.dir())));
        }
        if !words.is_empty() {
            line.push(' ');
            line.push_str(&shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" ")));
        }
        line
    }

    /// The command that was given once more, from any folder: with these flags, each in the place of the same one where it
    /// was given. A word after a flag that is none itself is its value.
    pub fn rerun_command(&self, flags: &[&str]) -> String {
        let asked = self.setup.asked.as_deref().unwrap_or(&[]);
        let end = asked.iter().position(|word| word == "--").unwrap_or(asked.len());
        let (own, command) = asked.split_at(end);
        // Names of files are as they were given: relative to where that was.
        let mut all = Vec::new();
        let has_value = |at: usize| flags.get(at + 1).is_some_and(|next| !next.starts_with('-'));
        let new = flags.iter().enumerate().filter(|(_, flag)| flag.starts_with('-'));
        let mut replaced: Vec<(&str, bool)> = new.map(|(at, flag)| (*flag, has_value(at))).collect();
        replaced.extend([("-C", true), ("--state-dir", true), ("--json", false)]);
        let mut words = own.iter();
        while let Some(word) = words.next() {
            let given = replaced.iter().find(|(flag, has_value)| {
                let rest = word.strip_prefix(flag);
                rest.is_some_and(|rest| rest.is_empty() || *has_value && (rest.starts_with('=') || *flag == "-C"))
            });
            match given {
                Some((flag, true)) if word == flag => drop(words.next()),
                Some(_) => {}
                None => all.push(word.clone()),
            }
        }
        all.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let names_run = own.iter().any(|word| word == "--run" || word.starts_with("--run="));
        if let Some(run) = self.setup.naming.run_id.as_ref().filter(|_| !names_run) {
            all.push(format!("--run={run}"));
        }
        all.extend(command.iter().cloned());
        self.line(&self.setup.cwd, &all)
    }
}
