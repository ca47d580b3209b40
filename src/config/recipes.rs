//! Ready-made `[notify]` sections, for the manual. The tests run each against a listener of their own.

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
