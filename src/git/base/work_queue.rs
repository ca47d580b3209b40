//! A small pool of threads that share a queue of tasks; a task may add more.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use super::error::Result;

/// More threads than this only wait for the file system.
const MOST: usize = 8;

/// This number of small tasks, a tree or the like, are worth a thread of their own.
pub(in crate::git) const SMALL_TASKS: usize = 64;

/// How many threads there are work for.
pub(in crate::git) fn threads() -> usize {
    // Asked once: it reads the files that say what a container may have.
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| {
        thread::available_parallelism()
            .map_or(1, NonZero::get)
            .min(MOST)
    })
}

/// What is made of each item that anything is made of, in any order; `per_thread` items are worth a thread.
pub(in crate::git) fn each<T: Sync, O: Send>(
    items: &[T],
    per_thread: usize,
    work: impl Fn(&T) -> Result<Option<O>> + Sync,
) -> Result<Vec<O>> {
    let threads = (items.len() / per_thread).clamp(1, threads());
    let portions = items.chunks(per_thread).collect();
    let made = run(portions, threads, |portion: &[T], _, made: &mut Vec<O>| {
        for item in portion {
            made.extend(work(item)?);
        }
        Ok(())
    })?;
    Ok(made.into_iter().flatten().collect())
}

/// The tasks of one thread. The last one added is done first, so that what is open stays little.
pub(in crate::git) struct WorkQueue<'c, T> {
    own: Vec<T>,
    shared: &'c Shared<T>,
}

struct Shared<T> {
    tasks: Mutex<Tasks<T>>,
    changed: Condvar,
    /// Threads that wait for a task.
    idle: AtomicUsize,
    /// An error ended it.
    stopped: AtomicBool,
}

struct Tasks<T> {
    waiting: Vec<T>,
    /// Threads that are at work, and may add tasks.
    busy: usize,
}

impl<T> WorkQueue<'_, T> {
    /// Adds a task.
    pub(crate) fn push(&mut self, task: T) {
        self.own.push(task);
    }

    /// Gives half of its tasks away when others wait: the oldest, which lead to the most.
    fn share(&mut self) {
        if self.own.len() > 1 && self.shared.idle.load(Ordering::Relaxed) > 0 {
            let half = self.own.len() / 2;
            let mut tasks = self.shared.lock();
            tasks.waiting.extend(self.own.drain(..half));
            drop(tasks);
            self.shared.changed.notify_all();
        }
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Tasks<T>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a task; `None` when there is none and nobody can add one.
    fn take(&self) -> Option<T> {
        let mut tasks = self.lock();
        tasks.busy -= 1;
        self.idle.fetch_add(1, Ordering::Relaxed);
        let task = loop {
            if self.stopped.load(Ordering::Relaxed) {
                break None;
            }
            if let Some(task) = tasks.waiting.pop() {
                tasks.busy += 1;
                break Some(task);
            }
            if tasks.busy == 0 {
                break None;
            }
            tasks = self
                .changed
                .wait(tasks)
                .unwrap_or_else(PoisonError::into_inner);
        };
        self.idle.fetch_sub(1, Ordering::Relaxed);
        drop(tasks);
        if task.is_none() {
            self.changed.notify_all();
        }
        task
    }
}

/// Ends it for all threads, unless the task was finished: an error or a panic must not leave the others waiting.
struct StopOnDrop<'c, T>(&'c Shared<T>);

impl<T> Drop for StopOnDrop<'_, T> {
    fn drop(&mut self) {
        let _tasks = self.0.lock();
        self.0.stopped.store(true, Ordering::Relaxed);
        self.0.changed.notify_all();
    }
}

/// Does `first` and all that is added meanwhile in `threads` threads, this one among them. Each has an output of its
/// own. The first error ends it.
pub(in crate::git) fn run<T: Send, O: Default + Send>(
    first: Vec<T>,
    threads: usize,
    work: impl Fn(T, &mut WorkQueue<'_, T>, &mut O) -> Result<()> + Sync,
) -> Result<Vec<O>> {
    let shared = Shared {
        tasks: Mutex::new(Tasks {
            waiting: first,
            busy: threads,
        }),
        changed: Condvar::new(),
        idle: AtomicUsize::new(0),
        stopped: AtomicBool::new(false),
    };
    let one = || -> Result<O> {
        let mut queue = WorkQueue {
            own: Vec::new(),
            shared: &shared,
        };
        let mut output = O::default();
        while !shared.stopped.load(Ordering::Relaxed) {
            let Some(task) = queue.own.pop().or_else(|| shared.take()) else {
                break;
            };
            let unfinished = StopOnDrop(&shared);
            work(task, &mut queue, &mut output)?;
            std::mem::forget(unfinished);
            queue.share();
        }
        Ok(output)
    };
    thread::scope(|scope| {
        // Where there can be no more threads, there are fewer at work.
        let begin = |_| {
            thread::Builder::new()
                .spawn_scoped(scope, one)
                .map_err(|_| shared.lock().busy -= 1)
                .ok()
        };
        let others: Vec<_> = (1..threads).filter_map(begin).collect();
        let own = one();
        let ended = others.into_iter().map(|other| match other.join() {
            Ok(output) => output,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let all: Vec<Result<O>> = std::iter::once(own)
            .chain(ended.collect::<Vec<_>>())
            .collect();
        all.into_iter().collect()
    })
}

/// Does both at the same time; one after the other where there can be no more threads.
pub(in crate::git) fn both<A, B: Send>(
    one: impl FnOnce() -> A,
    other: impl Fn() -> B + Sync,
) -> (A, B) {
    thread::scope(|scope| {
        let beside = thread::Builder::new().spawn_scoped(scope, &other).ok();
        let one = one();
        let other = beside.map_or_else(&other, |beside| {
            beside
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        (one, other)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Error;

    #[test]
    fn every_task_is_done_once() {
        for threads in [1, 2, 5] {
            let outputs = run(vec![10_u64], threads, |task, queue, sum: &mut u64| {
                *sum += 1;
                (0..task).for_each(|below| queue.push(below));
                Ok(())
            });
            assert_eq!(outputs.unwrap().iter().sum::<u64>(), 1 << 10);
        }
    }

    #[test]
    fn an_error_ends_it() {
        for threads in [1, 3] {
            let ended = run(
                (0..1000).collect(),
                threads,
                |task: i32, _: &mut WorkQueue<'_, i32>, (): &mut ()| {
                    if task == 500 {
                        Err(Error::corrupt("x"))
                    } else {
                        Ok(())
                    }
                },
            );
            assert!(ended.is_err());
        }
    }
}
