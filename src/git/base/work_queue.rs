//! A small pool of threads that share a queue of tasks; a task may add more.

use std::num::NonZero;
use std::sync::OnceLock;
use std::thread;

use parking_lot::{Condvar, Mutex};

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

/// What a task adds. The last one added is done first, so that what is open stays little.
pub(in crate::git) struct WorkQueue<T> {
    added: Vec<T>,
}

impl<T> WorkQueue<T> {
    /// Adds a task.
    pub(crate) fn push(&mut self, task: T) {
        self.added.push(task);
    }
}

struct Shared<T> {
    tasks: Mutex<Tasks<T>>,
    changed: Condvar,
}

struct Tasks<T> {
    waiting: Vec<T>,
    /// Threads that are at work, and may add tasks.
    busy: usize,
    /// An error ended it.
    stopped: bool,
}

impl<T> Shared<T> {
    /// Ends a task, with those that it added, and waits for another; `None` when there is none and no thread can add one.
    fn next(&self, added: &mut Vec<T>) -> Option<T> {
        let mut tasks = self.tasks.lock();
        tasks.busy -= 1;
        tasks.waiting.append(added);
        self.changed.notify_all();
        let may_come =
            |tasks: &mut Tasks<T>| !tasks.stopped && tasks.waiting.is_empty() && tasks.busy > 0;
        self.changed.wait_while(&mut tasks, may_come);
        let task = tasks.waiting.pop().filter(|_| !tasks.stopped)?;
        tasks.busy += 1;
        Some(task)
    }
}

/// Ends it for all threads, unless the task was finished: an error or a panic must not leave the others waiting.
struct StopOnDrop<'c, T>(&'c Shared<T>);

impl<T> Drop for StopOnDrop<'_, T> {
    fn drop(&mut self) {
        self.0.tasks.lock().stopped = true;
        self.0.changed.notify_all();
    }
}

/// Does `first` and all that is added meanwhile in `threads` threads, this one among them. Each has an output of its
/// own. The first error ends it.
pub(in crate::git) fn run<T: Send, O: Default + Send>(
    first: Vec<T>,
    threads: usize,
    work: impl Fn(T, &mut WorkQueue<T>, &mut O) -> Result<()> + Sync,
) -> Result<Vec<O>> {
    let shared = Shared {
        tasks: Mutex::new(Tasks {
            waiting: first,
            busy: threads,
            stopped: false,
        }),
        changed: Condvar::new(),
    };
    let one = || -> Result<O> {
        let mut queue = WorkQueue { added: Vec::new() };
        let mut output = O::default();
        while let Some(task) = shared.next(&mut queue.added) {
            let unfinished = StopOnDrop(&shared);
            work(task, &mut queue, &mut output)?;
            std::mem::forget(unfinished);
        }
        Ok(output)
    };
    thread::scope(|scope| {
        // Where there can be no more threads, there are fewer at work.
        let begin = |_| {
            let begun = thread::Builder::new().spawn_scoped(scope, one);
            begun.map_err(|_| shared.tasks.lock().busy -= 1).ok()
        };
        let others: Vec<_> = (1..threads).filter_map(begin).collect();
        let own = one();
        let ended = others.into_iter().map(|other| match other.join() {
            Ok(output) => output,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let all: Vec<Result<O>> = std::iter::once(own).chain(ended).collect();
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
                |task: i32, _: &mut WorkQueue<i32>, (): &mut ()| {
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
