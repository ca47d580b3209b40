//! Runs `manual-fix`.

mod edit;
mod lines;
mod reply;
mod screen;
mod watch;

use crate::engine::flow::fix_session::status;
use crate::engine::flow::manual_fix::{abort, start, verify};
use crate::engine::{Context, Error, ErrorKind, Result};
use crate::model::hint::Hint;

pub(super) use self::reply::show;
use self::reply::{go_on, reply};
use super::super::args::{ManualFixArgs, ManualFixCommand};
use super::super::exit::ExitCode;
use super::super::ui::{Reply, Ui};

use self::edit::Editor;

/// Dispatches.
pub(super) fn execute(context: &Context, args: &ManualFixArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    match &args.command {
        None if ui.interactive => {
            let editor = args.edit.then(|| Editor::of(context)).transpose()?;
            screen::screen(context, editor.as_ref(), ui)
        }
        None => opened(context, args.edit, true, ui),
        Some(ManualFixCommand::Start { edit }) => opened(context, *edit || args.edit, false, ui),
        Some(_) if args.edit => {
            let message = "--edit goes with a bare manual-fix, or with manual-fix start";
            Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["manual-fix", "--help"])))
        }
        Some(ManualFixCommand::Status) => Ok(reply(context, &status(context)?, ui)),
        Some(ManualFixCommand::Watch { wait }) => watch::watch(context, *wait, ui),
        Some(ManualFixCommand::Verify) => {
            let fix = verify(context, show(ui))?;
            let exit = if fix.session.verified {
                ExitCode::Done
            } else {
                ExitCode::VerificationFailed
            };
            Ok(reply(context, &fix, ui).exit(exit))
        }
        Some(ManualFixCommand::Continue { wait, prepare_only }) => {
            go_on(context, *wait, *prepare_only, show(ui), ui)
        }
        Some(ManualFixCommand::Abort) => Ok(reply(context, &abort(context)?, ui)),
    }
}

/// The screen of a session, opened or taken up.
pub(super) fn attend(context: &Context, ui: &Ui) -> Result<Reply> {
    screen::screen(context, None, ui)
}

/// Opens a session, and the editor where that is asked for; nobody is asked anything. With `look` the answer has what
/// has changed by now.
fn opened(context: &Context, edit: bool, look: bool, ui: &Ui) -> Result<Reply> {
    let editor = edit.then(|| Editor::of(context)).transpose()?;
    let fix = start(context)?;
    if context.dry_run() || !(edit || look) {
        return Ok(reply(context, &fix, ui));
    }
    if let Some(editor) = editor {
        editor.open(context, &fix.session, ui)?;
    }
    Ok(reply(context, &status(context)?, ui))
}
