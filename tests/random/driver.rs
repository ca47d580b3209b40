//! Plays inputs at a target, keeps those that lead to something new, and cuts down those that break a promise.

use std::cell::{Cell, RefCell};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::mutate;

/// How many inputs are remembered beside those that were kept.
const MOST_REMEMBERED: usize = 600;
/// How long an input is cut down.
const CUTTING: Duration = Duration::from_secs(5);
/// How long one round may take: something that does not end is a finding too.
const LONGEST_ROUND: Duration = Duration::from_secs(60);
/// All targets: the last one prints the table.
const TARGETS: usize = 7;

/// Something that reads inputs.
pub trait Target {
    /// The folder of its corpus.
    const NAME: &'static str;
    /// What its inputs are made of.
    const TOKENS: &'static [&'static [u8]];
    /// How many inputs are played at once.
    const AT_ONCE: usize = 1;
    /// No input is longer, in bytes.
    const LONGEST: usize = 16 << 10;

    /// Plays each input and says what it led to. Panics where one breaks a promise.
    fn play(&mut self, inputs: &[Vec<u8>]) -> Vec<u64>;

    /// Gives a changed input what is needed to get past the first check of it, a checksum say.
    fn complete(&self, input: Vec<u8>, _rng: &mut Rng) -> Vec<u8> {
        input
    }
}

/// A number for something that was seen.
pub fn seen(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// A message without what differs from input to input.
pub fn kind_of(message: &str) -> String {
    message
        .chars()
        .filter(|c| !c.is_ascii_digit())
        .take(60)
        .collect()
}

/// A folder in memory where there is one: syncing is not what is tested here.
pub fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    tempfile::tempdir_in(place)
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text}"))
    })
}

/// The inputs that are kept for a target, by name.
fn corpus(target: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/random/corpus")
        .join(target);
    let entries =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let kept: BTreeMap<PathBuf, Vec<u8>> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    assert!(
        kept.len() >= 3,
        "only {} inputs in {}",
        kept.len(),
        folder.display()
    );
    kept
}

thread_local! {
    /// Whether this thread plays an input, whose panic is caught.
    static PLAYING: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the words of panics of inputs; all others are printed as ever.
fn keep_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if PLAYING.get() {
                PANIC.set(info.to_string());
            } else {
                usual(info);
            }
        }));
    });
}

/// What inputs led to, or the words of the panic.
fn played<T: Target>(target: &mut T, inputs: &[Vec<u8>]) -> Result<Vec<u64>, String> {
    PLAYING.set(true);
    let played = catch_unwind(AssertUnwindSafe(|| target.play(inputs)));
    PLAYING.set(false);
    played.map_err(|_| PANIC.take())
}

/// Where a panic was: what panics there again is the same finding.
fn place(panic: &str) -> String {
    panic.lines().next().unwrap_or_default().to_owned()
}

/// What is played at the moment. A thread ends the process where that takes too long.
struct Watch(Arc<Mutex<Round>>);

/// Since when which inputs are played.
type Round = Option<(Instant, Vec<u8>)>;

impl Watch {
    fn start(target: &'static str) -> Self {
        let current: Arc<Mutex<Round>> = Arc::default();
        let weak = Arc::downgrade(&current);
        std::thread::spawn(move || {
            while let Some(current) = weak.upgrade() {
                let late = current
                    .lock()
                    .unwrap()
                    .take_if(|(begun, _)| begun.elapsed() > LONGEST_ROUND);
                if let Some((_, input)) = late {
                    let file = keep(target, &input);
                    eprintln!("{target}: {} does not come to an end", file.display());
                    std::process::exit(1);
                }
                drop(current);
                std::thread::sleep(Duration::from_millis(500));
            }
        });
        Self(current)
    }

    fn note(&self, inputs: &[Vec<u8>]) {
        *self.0.lock().unwrap() = Some((Instant::now(), inputs.concat()));
    }
}

/// Writes an input that broke a promise where it can be taken into the corpus.
fn keep(target: &str, input: &[u8]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("random")
        .join(target);
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{:08x}", crc32fast::hash(input)));
    fs::write(&file, input).unwrap();
    file
}

/// Leaves out of an input what it needs not to panic at the same place.
fn cut_down<T: Target>(target: &mut T, mut input: Vec<u8>, at: &str) -> Vec<u8> {
    let begun = Instant::now();
    let mut size = input.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        while from < input.len() {
            if begun.elapsed() > CUTTING {
                return input;
            }
            let rest = input.get(from + size..).unwrap_or_default();
            let shorter = vec![[&input[..from], rest].concat()];
            if played(target, &shorter).is_err_and(|panic| place(&panic) == at) {
                input = shorter.concat();
            } else {
                from += size;
            }
        }
        size /= 2;
    }
    input
}

/// One line of the table.
struct Row {
    target: &'static str,
    kept: usize,
    executions: u64,
    seconds: f64,
    behaviours: usize,
    findings: usize,
}

static ROWS: Mutex<Vec<Row>> = Mutex::new(Vec::new());

fn report(seed: u64, row: Row) {
    let Row {
        target,
        executions,
        findings,
        ..
    } = row;
    eprintln!("random: {target}: seed {seed}, {executions} executions, {findings} findings");
    let mut rows = ROWS.lock().unwrap();
    rows.push(row);
    if rows.len() < TARGETS {
        return;
    }
    rows.sort_unstable_by_key(|row| row.target);
    let mut table = format!(
        "\n{:<16}{:>6}{:>12}{:>9}",
        "target", "kept", "executions", "seconds"
    );
    table.push_str(&format!("{:>12}{:>10}\n", "behaviours", "findings"));
    for row in rows.iter() {
        let Row {
            target,
            kept,
            executions,
            seconds,
            behaviours,
            findings,
        } = row;
        table.push_str(&format!(
            "{target:<16}{kept:>6}{executions:>12}{seconds:>9.1}{behaviours:>12}{findings:>10}\n"
        ));
    }
    eprintln!("{table}seed {seed}");
}

/// Plays the corpus and changes of it; panics where an input broke a promise.
pub fn run<T: Target>(mut target: T) {
    keep_panics();
    let seed = number("RECOVER_RANDOM_SEED").unwrap_or(1);
    let time = Duration::from_secs(number("RECOVER_RANDOM_SECONDS").unwrap_or(1));
    let mut rng = Rng::with_seed(seed ^ (u64::from(crc32fast::hash(T::NAME.as_bytes())) << 32));
    let watch = Watch::start(T::NAME);
    let kept: Vec<Vec<u8>> = corpus(T::NAME).into_values().collect();
    let mut pool = kept.clone();
    let (mut behaviours, mut executions) = (HashSet::new(), 0);
    let mut findings: BTreeMap<String, (Vec<u8>, String)> = BTreeMap::new();
    let mut next = kept
        .chunks(T::AT_ONCE)
        .map(<[Vec<u8>]>::to_vec)
        .collect::<Vec<_>>()
        .into_iter();
    let begun = Instant::now();
    loop {
        let inputs = match next.next() {
            Some(inputs) => inputs,
            None if begun.elapsed() >= time => break,
            None => (0..T::AT_ONCE)
                .map(|_| {
                    let changed = mutate::changed(&mut rng, &pool, T::TOKENS, T::LONGEST);
                    target.complete(changed, &mut rng)
                })
                .collect(),
        };
        watch.note(&inputs);
        executions += inputs.len() as u64;
        match played(&mut target, &inputs) {
            Ok(all) => {
                for (input, what) in inputs.into_iter().zip(all) {
                    if behaviours.insert(what) {
                        if pool.len() < kept.len() + MOST_REMEMBERED {
                            pool.push(input);
                        } else {
                            let at = rng.usize(kept.len()..pool.len());
                            pool[at] = input;
                        }
                    }
                }
            }
            Err(panic) => {
                let mut found = Vec::new();
                for input in inputs {
                    if let Err(panic) = played(&mut target, std::slice::from_ref(&input)) {
                        found.push((input, panic));
                    }
                }
                assert!(
                    !found.is_empty(),
                    "{}: only all inputs together: {panic}",
                    T::NAME
                );
                for (input, panic) in found {
                    let at = place(&panic);
                    if let Entry::Vacant(new) = findings.entry(at) {
                        let input = cut_down(&mut target, input, new.key());
                        let panic = played(&mut target, std::slice::from_ref(&input))
                            .err()
                            .unwrap_or(panic);
                        new.insert((input, panic));
                    }
                }
            }
        }
    }
    *watch.0.lock().unwrap() = None;
    let seconds = begun.elapsed().as_secs_f64();
    let (behaviours, number) = (behaviours.len(), findings.len());
    report(
        seed,
        Row {
            target: T::NAME,
            kept: kept.len(),
            executions,
            seconds,
            behaviours,
            findings: number,
        },
    );
    let told: Vec<String> = findings
        .into_values()
        .map(|(input, panic)| {
            format!(
                "{}\n{}\n{panic}",
                keep(T::NAME, &input).display(),
                mutate::shown(&input)
            )
        })
        .collect();
    assert!(
        told.is_empty(),
        "RECOVER_RANDOM_SEED={seed}\n{}",
        told.join("\n\n")
    );
}
