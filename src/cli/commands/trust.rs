//! Runs `trust`.

use std::fmt::Write as _;

use super::super::args::TrustArgs;
use super::super::screens::{Consent, agrees, require_yes, trusts};
use super::super::ui::{Reply, Ui, escape};
use crate::engine::{Context, Error, ErrorKind, Result, remote, runs, trust};
use crate::policy::text::size;

/// This many recorded commands are shown to people; the document has all.
const SHOWN: usize = 20;

/// `recover trust`.
pub(super) fn trust(context: &mut Context, args: &TrustArgs, ui: &Ui) -> Result<Reply> {
    if args.state {
        trust_state(context, ui)
    } else {
        trust_configuration(context, args.revoke)
    }
}

/// What the project's configuration starts and permits, shown and trusted, or trusted no longer.
fn trust_configuration(context: &Context, revokes: bool) -> Result<Reply> {
    let mut found = trust::look(context);
    let file = escape(&found.path);
    let changed = if revokes {
        trust::revoke(context)?
    } else {
        trust::trust(context)?
    };
    let planned = context.dry_run();
    let mut text = if found.values.is_empty() {
        format!("{file} contains nothing that needs trust.\n")
    } else {
        format!("What {file} starts or permits:\n{}", listed(&found))
    };
    text.push_str(match (revokes, changed, planned) {
        (true, true, false) => "What was trusted of this repository's configuration is forgotten.\n",
        (true, true, true) => "Would forget what is trusted of this repository's configuration.\n",
        (true, false, _) => "Nothing of this repository's configuration was trusted.\n",
        (false, true, false) => {
            "Trusted from now on, in all work trees of this repository, until one of these values changes.\n"
        }
        (false, true, true) => "Not trusted: recover trust trusts it.\n",
        (false, false, _) if found.values.is_empty() => "",
        (false, false, _) => "Trusted already.\n",
    });
    found.changed = changed && !planned;
    found.trusted = found.values.is_empty() || if planned { found.trusted } else { !revokes };
    found.plan = planned.then_some(runs::Planned { changed });
    Ok(Reply::new(found, text).content())
}

/// Shows what would be started and is not trusted, and asks for it; whether it is trusted now. A supervised agent that has
/// a terminal may trust for its own call, and nothing is remembered of that.
pub(crate) fn ask(context: &Context, ui: &Ui) -> Result<bool> {
    let found = trust::look(context);
    let file = escape(&found.path);
    let about = if found.was_trusted {
        format!("What {file} starts or permits has changed since it was trusted:")
    } else {
        format!("{file} is not trusted yet. It starts or permits:")
    };
    match trusts(context, ui, &format!("{about}\n{}", listed(&found)))? {
        Consent::No => Ok(false),
        Consent::Once => Ok(true),
        Consent::Always => {
            trust::refuse_to_agent(context, "trust", trust::Reach::Record)?;
            trust::trust(context)?;
            Ok(true)
        }
    }
}

/// Shows what would be sent, and asks for it: it may be from now on.
///
/// # Errors
/// `error` where nobody can be asked; else that it may not (13).
pub(crate) fn ask_for_consent(context: &Context, ui: &Ui, error: Error) -> Result<()> {
    let Some(url) = error.url.as_deref().filter(|_| !context.dry_run()) else {
        return Err(error);
    };
    let mut shown = format!("{}\n", escape(&error.message));
    for one in &error.paths {
        let size = one.size.map(size).unwrap_or_default();
        let _ = writeln!(
            shown,
            "  {size:>10}  {}  {}",
            escape(&one.path.to_lossy()),
            escape(&one.reason)
        );
    }
    if !agrees(
        context,
        ui,
        &shown,
        &format!("Send it to {}, now and from now on?", escape(url)),
    )? {
        let message = format!("cancelled; nothing was sent to {url}");
        return Err(Error::new(ErrorKind::ConsentNeeded, message).hint(context.rerun(&["--yes"])));
    }
    trust::refuse_to_agent(context, "trust", trust::Reach::Record)?;
    remote::give_consent(context, url)
}

/// The values, a line each, as a difference from what was trusted. Whole, and nothing is masked: what is hidden cannot be
/// judged.
fn listed(found: &trust::ProjectTrust) -> String {
    let mut text = String::new();
    for value in &found.values {
        let mark = match value.change {
            trust::Change::Added if !found.was_trusted => ' ',
            trust::Change::Added => '+',
            trust::Change::Changed => '~',
            trust::Change::Removed => '-',
            trust::Change::Unchanged => ' ',
        };
        let _ = write!(
            text,
            "{mark} {} = {}",
            escape(&value.key),
            escape(&trust::shown(value))
        );
        if let Some(before) = &value.trusted_value {
            let _ = write!(text, "  (was {})", escape(&trust::shown_json(before)));
        }
        text.push('\n');
    }
    text
}

/// `recover trust --state`.
fn trust_state(context: &mut Context, ui: &Ui) -> Result<Reply> {
    if ui.interactive && !context.says_yes() && !context.dry_run() && context.store().has_content()
    {
        let state = trust::look_at_state(context)?;
        if state.foreign {
            require_yes(context, ui, &told(&state), "Take it over?")?;
        }
    }
    let trusted = trust::take_over_state(context)?;
    let (state, path) = (&trusted.state, escape(&trusted.state.path));
    let text = match trusted.plan {
        Some(runs::Planned { changed: true }) => {
            format!("Would take over the state in {path}\n{}", told(state))
        }
        None if trusted.changed => format!("Took over the state in {path}\n{}", told(state)),
        _ => format!("The state in {path} is yours already.\n"),
    };
    Ok(Reply::new(trusted, text))
}

/// What the state holds, for people.
fn told(state: &trust::StateReport) -> String {
    let mut text = format!(
        "{} runs, {} attempts, {} checkpoints; {} recorded commands and prompts\n",
        state.runs,
        state.attempts,
        state.checkpoints,
        state.commands.len()
    );
    for one in state.commands.iter().take(SHOWN) {
        let _ = writeln!(
            text,
            "  {} {}: {}",
            escape(&one.run.to_string()),
            one.kind,
            escape(&one.text)
        );
    }
    if state.commands.len() > SHOWN {
        let _ = writeln!(text, "  … and {} more", state.commands.len() - SHOWN);
    }
    text
}
