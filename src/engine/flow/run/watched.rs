//! A command that runs, and its agent's records as they come.

use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::agent::Stream;
use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, Result};
use crate::engine::base::runs::run_of;
use crate::model::agent_record::AgentKind;
use crate::model::event::Payload;
use crate::model::run::{ProcessId, RunKey};
use crate::process::{Exit, Supervised, Watch, Watcher};
use crate::store::NewEvent;

/// Runs an agent's command. The session that its records name is in the ledger as soon as that is seen: a kill of `recover`
/// or of the agent does not lose it. `agent` is which one it is, if that is known, and whether what is shown of its records is
/// text for people; `None`: the command is no agent's.
pub(super) fn run_watched(
    context: &Context,
    key: &RunKey,
    mut supervised: Supervised,
    agent: Option<&Watched>,
) -> std::io::Result<Exit> {
    let started =
        |child: &ProcessId| record_child(context, key, child).map_err(std::io::Error::other);
    let Some(&Watched {
        kind,
        is_read,
        has_session,
    }) = agent
    else {
        return supervised.run(&context.interrupts, started);
    };
    let (seen, sessions) = channel();
    supervised.watcher = Some(Watcher::new(Records {
        stream: Some(Stream::new(kind)),
        is_read,
        seen: has_session.then_some(seen),
    }));
    let own = context.for_run(key).map_err(std::io::Error::other)?;
    thread::scope(|scope| {
        scope.spawn(move || {
            for session in sessions {
                record_session(&own, key, &session);
            }
        });
        let exit = supervised.run(&context.interrupts, started);
        // With it goes the other end.
        drop(supervised);
        exit
    })
}

/// How an agent's records are looked at while it runs.
pub(super) struct Watched {
    /// Whose they are, where that is known.
    pub kind: Option<AgentKind>,
    /// Whether they are shown as text.
    pub is_read: bool,
    /// Whether its session is the run's.
    pub has_session: bool,
}

/// Looks at an agent's records as they come.
struct Records {
    /// `None` where there is nothing more to be seen.
    stream: Option<Stream>,
    is_read: bool,
    /// Gets the session once.
    seen: Option<Sender<String>>,
}

impl Watch for Records {
    fn take(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let stream = self.stream.as_mut()?;
        let mut shown = stream.take(bytes);
        if let Some(session) = stream.session()
            && let Some(seen) = self.seen.take()
        {
            // The receiver lives as long as the command.
            let _ = seen.send(session.to_owned());
        }
        let is_over = stream.is_plain() || (self.seen.is_none() && !self.is_read);
        if is_over {
            shown.extend(stream.end());
            self.stream = None;
        }
        self.is_read.then_some(shown)
    }

    fn end(&mut self) -> Vec<u8> {
        let rest = self
            .stream
            .take()
            .filter(|_| self.is_read)
            .map(|mut stream| stream.end());
        rest.unwrap_or_default()
    }
}

fn record_session(context: &Context, key: &RunKey, session: &str) {
    let record = || {
        let ledger = context.store().lock()?;
        let run = run_of(ledger.state(), key)?;
        if run.agent_session.as_deref() == Some(session) && !run.fresh_session {
            return Ok(());
        }
        let payload = Payload::AgentSessionSeen {
            session: session.to_owned(),
        };
        context.record_in(ledger, key, vec![payload]).map(drop)
    };
    // It is recorded at the attempt's end all the same.
    record().unwrap_or_else(
        |error: Error| tracing::warn!(%error, "the agent's session is not recorded yet"),
    );
}

fn record_child(context: &Context, key: &RunKey, child: &ProcessId) -> Result<()> {
    if let Some(watchdog) = &*context.watchdog.borrow() {
        let guarded = watchdog.guard(child);
        guarded.map_err(|error| Error::io("the watchdog of the run's claim is gone", error))?;
    }
    let mut ledger = context.store().lock()?;
    let event = NewEvent::about(
        key,
        Payload::ChildStarted {
            child: child.clone(),
        },
    );
    Ok(ledger.append(context.clock.now(), vec![event])?)
}
