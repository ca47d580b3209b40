//! What stands between a machine and its server: a connection that is cut after so many bytes, stalled, or only counted.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What is done to connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// All are closed when the client has sent so many bytes, over all connections since it was set.
    CutSent(u64),
    /// The same for the server's answers.
    CutAnswered(u64),
    /// From so many bytes of the client's on nothing goes on, and the connections stay open.
    StallSent(u64),
    /// The same for the server's answers.
    StallAnswered(u64),
}

impl Fault {
    /// Where what the client sends is cut, and where it is stalled.
    fn of_sent(self) -> (Option<u64>, Option<u64>) {
        match self {
            Self::CutSent(at) => (Some(at), None),
            Self::StallSent(at) => (None, Some(at)),
            _ => (None, None),
        }
    }

    /// The same for the server's answers.
    fn of_answered(self) -> (Option<u64>, Option<u64>) {
        match self {
            Self::CutAnswered(at) => (Some(at), None),
            Self::StallAnswered(at) => (None, Some(at)),
            _ => (None, None),
        }
    }
}

#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    answered: AtomicU64,
    connections: AtomicUsize,
}

/// A proxy to one port.
pub struct Proxy {
    /// Where it listens.
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    target: u16,
    fault: Mutex<(Fault, Arc<Counts>)>,
    /// Whether the first connection that was cut is the last one.
    heals: AtomicBool,
    cuts: AtomicUsize,
    ended: AtomicBool,
}

impl Proxy {
    /// Listens on a port of its own.
    pub fn to(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let shared = Arc::new(Shared {
            target,
            fault: Mutex::new((Fault::None, Arc::default())),
            heals: AtomicBool::new(false),
            cuts: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        });
        let all = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if all.ended.load(Ordering::Relaxed) {
                    break;
                }
                let all = Arc::clone(&all);
                thread::spawn(move || all.serve(&client));
            }
        });
        Self { port, shared }
    }

    /// What is done to connections that begin now.
    pub fn fault(&self) -> Fault {
        self.shared.now().0
    }

    /// Does this to all connections from now on, and counts anew. Those that are stalled are closed.
    pub fn set(&self, fault: Fault) {
        self.shared.heals.store(false, Ordering::Relaxed);
        *self
            .shared
            .fault
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = (fault, Arc::default());
    }

    /// Cuts one connection, and lets all later ones through.
    pub fn cut_once(&self, fault: Fault) {
        self.set(fault);
        self.shared.heals.store(true, Ordering::Relaxed);
    }

    /// How many connections were cut so far.
    pub fn cuts(&self) -> usize {
        self.shared.cuts.load(Ordering::Relaxed)
    }

    /// Bytes that were sent and answered, and how many connections there were, since the fault was set.
    pub fn counted(&self) -> (u64, u64, usize) {
        let (_, counts) = self.shared.now();
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (
            get(&counts.sent),
            get(&counts.answered),
            counts.connections.load(Ordering::Relaxed),
        )
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        // It waits for one more.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn now(&self) -> (Fault, Arc<Counts>) {
        self.fault
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn serve(&self, client: &TcpStream) {
        let (fault, counts) = self.now();
        counts.connections.fetch_add(1, Ordering::Relaxed);
        let Ok(server) = TcpStream::connect(("127.0.0.1", self.target)) else {
            return;
        };
        thread::scope(|scope| {
            scope.spawn(|| self.copy(client, &server, &counts, &counts.sent, fault.of_sent()));
            scope.spawn(|| {
                self.copy(
                    &server,
                    client,
                    &counts,
                    &counts.answered,
                    fault.of_answered(),
                );
            });
        });
    }

    fn copy(
        &self,
        mut from: &TcpStream,
        mut to: &TcpStream,
        counts: &Arc<Counts>,
        count: &AtomicU64,
        (cut, stall): (Option<u64>, Option<u64>),
    ) {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let before = count.fetch_add(length as u64, Ordering::Relaxed);
            let room = |limit: u64| {
                usize::try_from(limit.saturating_sub(before))
                    .unwrap_or(usize::MAX)
                    .min(length)
            };
            if let Some(limit) = cut.filter(|limit| before + length as u64 >= *limit) {
                let _ = to.write_all(&buffer[..room(limit)]);
                self.cuts.fetch_add(1, Ordering::Relaxed);
                if self.heals.load(Ordering::Relaxed) {
                    self.fault.lock().unwrap_or_else(PoisonError::into_inner).0 = Fault::None;
                }
                // Both ways, and at once.
                for stream in [from, to] {
                    let _ = stream.shutdown(Shutdown::Both);
                }
                return;
            }
            if let Some(limit) = stall.filter(|limit| before + length as u64 >= *limit) {
                let _ = to.write_all(&buffer[..room(limit)]);
                let goes_on =
                    || !self.ended.load(Ordering::Relaxed) && Arc::ptr_eq(&self.now().1, counts);
                while goes_on() && is_open(from) {
                    thread::sleep(Duration::from_millis(20));
                }
                for stream in [from, to] {
                    let _ = stream.shutdown(Shutdown::Both);
                }
                return;
            }
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }
}

/// Whether the other side has not gone; what it sent meanwhile is not read.
fn is_open(stream: &TcpStream) -> bool {
    let _ = stream.set_nonblocking(true);
    let open = match stream.peek(&mut [0]) {
        Ok(length) => length > 0,
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
    };
    let _ = stream.set_nonblocking(false);
    open
}
