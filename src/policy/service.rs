//! The files of the service that resumes runs which ended with the machine: units of systemd, an agent of launchd, lines of a crontab.

use std::ops::Range;

use super::hook::plugin::{Owner, marked, owner};
use crate::model::hint::quote;

/// What the service is called.
pub(crate) const NAME: &str = "recover-resume";
/// The command of `recover` that makes its files.
const MAKER: &str = "service";
const WORDS: &str = "resume --interrupted --all-repos";
/// The variables by which its folders are found, where they are not the usual ones.
pub(crate) const FOLDERS: [&str; 2] = ["XDG_CONFIG_HOME", "XDG_STATE_HOME"];

/// What it starts.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// Absolute path of `recover`.
    pub program: String,
    /// Those of [`FOLDERS`] that are set.
    pub folders: Vec<(&'static str, String)>,
}

impl Start {
    /// systemd's units, each with its name.
    pub(crate) fn units(&self) -> [(String, String); 2] {
        let about = "Description=Resume the runs of recover that ended with the machine\n\
                     Documentation=man:recover-service(1)";
        let set = |(name, folder): &(&str, String)| {
            format!("Environment={}\n", unit_word(&format!("{name}={folder}")))
        };
        let service = format!(
            "[Unit]\n{about}\n\n[Service]\nType=oneshot\n{}ExecStart={} {WORDS}\n\
             # recover ends what it supervises; what notifies you outlives it by seconds.\nKillMode=process\n",
            self.folders.iter().map(set).collect::<String>(),
            unit_word(&self.program),
        );
        let timer = format!(
            "[Unit]\n{about}\n\n[Timer]\nOnStartupSec=1min\nOnUnitInactiveSec=15min\n\n[Install]\nWantedBy=timers.target\n"
        );
        [("service", service), ("timer", timer)]
            .map(|(kind, text)| (format!("{NAME}.{kind}"), marked(&text, MAKER)))
    }

    /// launchd's property list.
    pub(crate) fn agent(&self) -> String {
        let string = |text: &str| format!("<string>{}</string>", xml(text));
        let words = std::iter::once(self.program.as_str()).chain(WORDS.split(' '));
        let words: String = words.map(string).collect();
        let set = |(name, folder): &(&str, String)| format!("<key>{name}</key>{}", string(folder));
        let text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\"><dict>\n  <key>Label</key>{}\n  \
             <key>ProgramArguments</key><array>{words}</array>\n  <key>EnvironmentVariables</key><dict>{}</dict>\n  <key>RunAtLoad</key><true/>\n  \
             <key>StartInterval</key><integer>900</integer>\n  <key>AbandonProcessGroup</key><true/>\n</dict></plist>\n",
            string(NAME),
            self.folders.iter().map(set).collect::<String>()
        );
        marked(&text, MAKER)
    }

    /// The lines of a crontab.
    pub(crate) fn cron_lines(&self) -> String {
        let set = |(name, folder): &(&str, String)| format!("{name}={} ", quote(folder));
        let command = format!(
            "{}{} {WORDS} >/dev/null 2>&1",
            self.folders.iter().map(set).collect::<String>(),
            quote(&self.program)
        );
        // A bare percent sign ends the command.
        let command = command.replace('%', "\\%");
        marked(
            &format!("@reboot {command}\n*/15 * * * * {command}\n"),
            MAKER,
        )
    }
}

/// A word of a unit: the specifiers of systemd are none in it.
fn unit_word(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('%', "%%"))
}

fn xml(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

/// What a crontab has of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CronLines {
    /// Nothing.
    None,
    /// What was written.
    Ours,
    /// Lines that a user changed.
    Edited,
}

/// Where our lines are in a crontab: the mark and the two after it.
fn place_in(crontab: &str) -> Option<Range<usize>> {
    let mark = marked("", MAKER);
    let (mark, _) = mark.split_once('(')?;
    let start = crontab
        .match_indices(mark)
        .map(|(at, _)| at)
        .find(|at| *at == 0 || crontab[..*at].ends_with('\n'))?;
    let lines = crontab[start..].split_inclusive('\n').take(3);
    Some(start..start + lines.map(str::len).sum::<usize>())
}

/// What a crontab has of ours.
pub(crate) fn cron_lines_in(crontab: &str) -> CronLines {
    match place_in(crontab).map(|place| owner(&crontab[place])) {
        None => CronLines::None,
        Some(Owner::Ours) => CronLines::Ours,
        Some(Owner::Edited | Owner::Theirs) => CronLines::Edited,
    }
}

/// The crontab with `lines` in place of ours, or at its end; all other bytes stay.
pub(crate) fn with_cron_lines(crontab: &str, lines: &str) -> String {
    match place_in(crontab) {
        Some(place) => [&crontab[..place.start], lines, &crontab[place.end..]].concat(),
        None => [crontab, lines].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(program: &str) -> Start {
        Start {
            program: program.to_owned(),
            folders: vec![("XDG_STATE_HOME", "/state of <me> & 100%".to_owned())],
        }
    }

    #[test]
    fn every_path_is_one_word() {
        let start = start("/a \"b\"/50%/recover");
        let [(_, service), _] = start.units();
        assert!(
            service.contains(
                "ExecStart=\"/a \\\"b\\\"/50%%/recover\" resume --interrupted --all-repos\n"
            ),
            "{service}"
        );
        assert!(service.contains("Environment=\"XDG_STATE_HOME=/state of <me> & 100%%\"\n"));
        let agent = start.agent();
        assert!(agent.contains("<string>/state of &lt;me&gt; &amp; 100%</string>"));
        assert!(agent.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- # Made by "));
        let lines = start.cron_lines();
        assert!(
            lines.contains("\n@reboot XDG_STATE_HOME='/state of <me> & 100\\%' '/a \"b\"/50\\%/recover' resume "),
            "{lines}"
        );
    }

    #[test]
    fn what_was_made_is_known_and_what_was_edited() {
        let start = start("/bin/recover");
        for made in [start.agent(), start.cron_lines()]
            .into_iter()
            .chain(start.units().map(|(_, text)| text))
        {
            assert_eq!(owner(&made), Owner::Ours, "{made}");
            assert_eq!(owner(&(made + "\n")), Owner::Edited);
        }
    }

    #[test]
    fn a_crontab_keeps_every_other_byte() {
        let (first, second) = (start("/bin/recover").cron_lines(), start("/x").cron_lines());
        for theirs in ["", "# mine\n0 1 * * * true\n", "PATH=/bin\n\n"] {
            let with = with_cron_lines(theirs, &first);
            assert_eq!(cron_lines_in(&with), CronLines::Ours);
            assert_eq!(with_cron_lines(&with, &first), with);
            let later = with.clone() + "30 2 * * * false\n";
            let other = with_cron_lines(&later, &second);
            assert!(other.contains(&second) && !other.contains(&first));
            assert_eq!(with_cron_lines(&with, ""), theirs);
            assert_eq!(
                with_cron_lines(&other, ""),
                theirs.to_owned() + "30 2 * * * false\n"
            );
            assert_eq!(cron_lines_in(theirs), CronLines::None);
            let edited = with.replace("*/15", "*/5");
            assert_eq!(cron_lines_in(&edited), CronLines::Edited);
        }
    }
}
