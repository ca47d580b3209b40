//! Runs an agent's command, and reads its records while it does.

use std::sync::mpsc::{Sender, channel};
use std::thread;

use serde_json::Value;

use super::acp::{Conversation, Outcome, Terms};
use super::gate::Pass;
use super::guard::Guard;
use crate::agent::Stream;
use crate::engine::base::runs::run_of;
use crate::engine::base::{Context, Error, Result};
use crate::engine::remote::Session;
use crate::model::agent_record::AgentKind;
use crate::model::{Payload, ProcessId, RunKey};
use crate::process::{Exit, Supervised, Watch, Watcher};
use crate::store::NewEvent;

/// Runs an agent's command. The session that its records name is in the ledger as soon as that is seen: a kill of `recover`
/// or of the agent does not lose it. `agent` is which one it is, if that is known, and whether what is shown of its records is
/// text for people; `None`: the command is no agent's.
pub(super) fn run_watched(
    context: &Context,
    key: &RunKey,
    mut supervised: Supervised,
    (agent, guard): (Option<&Watched>, &Guard<'_>),
    (session, pass): (Option<&Session<'_>>, &Pass),
) -> std::io::Result<(Exit, Outcome)> {
    let started = |child: &ProcessId| {
        record_child(context, key, child, session).map_err(std::io::Error::other)
    };
    let Some(watched) = agent else {
        let exit = guard.watch(&supervised, |one| one.run(&context.interrupts, started))?;
        return Ok((exit, Outcome::default()));
    };
    let (seen, sessions) = channel();
    let (conversation, relay) = watched
        .terms
        .clone()
        .map(|terms| Conversation::new(context, key, terms, &mut supervised))
        .transpose()?
        .unzip();
    let mut count = guard.observer();
    let observer = move |kind, record: &Value| {
        count(kind, record);
        if let Some(relay) = &relay {
            relay.take(record);
        }
    };
    supervised.watcher = Some(Watcher::new(Records {
        stream: Some(Stream::new(watched.kind).observed(observer)),
        is_read: watched.is_read,
        seen: watched.has_session.then_some(seen),
        pass: pass.clone(),
    }));
    let own = context.for_run(key).map_err(std::io::Error::other)?;
    thread::scope(|scope| {
        scope.spawn(move || {
            for session in sessions {
                record_session(&own, key, &session);
            }
        });
        let talk = conversation.map(|one| scope.spawn(move || one.lead()));
        let exit = guard.watch(&supervised, |one| one.run(&context.interrupts, started));
        // With it go the other ends.
        drop(supervised);
        let outcome = match talk.map(thread::ScopedJoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(outcome)) => outcome,
            None => Outcome::default(),
        };
        Ok((exit?, outcome))
    })
}

/// How an agent's records are read while it runs.
pub(super) struct Watched {
    /// Whose they are, where that is known.
    pub kind: Option<AgentKind>,
    /// Whether they are shown as text.
    pub is_read: bool,
    /// Whether its session is the run's.
    pub has_session: bool,
    /// What is said to it by the Agent Client Protocol, where it is driven by that.
    pub terms: Option<Terms>,
}

/// Reads an agent's records as they come.
struct Records {
    /// `None` where there is nothing more to be seen.
    stream: Option<Stream>,
    is_read: bool,
    /// Gets the session once.
    seen: Option<Sender<String>>,
    pass: Pass,
}

impl Watch for Records {
    fn take(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let stream = self.stream.as_mut()?;
        let mut shown = stream.take(bytes);
        self.pass.notice(stream);
        if let Some(session) = stream.session()
            && let Some(seen) = self.seen.take()
        {
            // The receiver lives as long as the command.
            let _ = seen.send(session.to_owned());
        }
        if stream.is_plain() {
            shown.extend(stream.end());
            self.stream = None;
        }
        self.is_read.then_some(shown)
    }

    fn end(&mut self) -> Vec<u8> {
        let rest = self.stream.take().filter(|_| self.is_read);
        rest.map(|mut stream| stream.end()).unwrap_or_default()
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

fn record_child(
    context: &Context,
    key: &RunKey,
    child: &ProcessId,
    session: Option<&Session<'_>>,
) -> Result<()> {
    session.map_or(Ok(()), |session| session.guard(child))?;
    let mut ledger = context.store().lock()?;
    let child = child.clone();
    let event = NewEvent::about(key, Payload::ChildStarted { child });
    Ok(ledger.append(context.clock.now(), vec![event])?)
}
