//! One case: a tree, a checkpoint, changes, a rollback, its undo and its redo, each compared with what must come of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use fastrand::Rng;
use recover::testing::policy::Edits;

use crate::driver::{Driver, How, Outcome};
use crate::oracle::{Kept, Name, Node, Rules, Staged, World, after, staged, walk};
use crate::world::{ASIDE, Maker, names};

/// How far a case came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Nothing,
    Refused,
    UndoRefused,
    RedoRefused,
    Whole,
}

/// A work tree with all that belongs to it, as it is now.
struct Moment {
    world: World,
    index: Staged,
    /// Everything of `.git` that is the user's, the index aside.
    git: World,
}

struct Case<'a> {
    root: &'a Path,
    driver: Driver,
    exclude: String,
    how: How,
}

/// Paths that differ, for people.
fn differing(
    found: &World,
    expected: &World,
) -> BTreeMap<String, (Option<String>, Option<String>)> {
    let shown =
        |node: Option<&Node>| node.map(|node| format!("{node:?}").chars().take(60).collect());
    let all: BTreeSet<&Name> = found.keys().chain(expected.keys()).collect();
    let differ = all
        .into_iter()
        .filter(|path| found.get(*path) != expected.get(*path));
    differ
        .map(|path| {
            (
                path.escape_ascii().to_string(),
                (shown(found.get(path)), shown(expected.get(path))),
            )
        })
        .collect()
}

impl Case<'_> {
    fn moment(&self) -> Moment {
        let mut git = walk(
            &self.root.join(".git"),
            &["objects", "recover", "index", "refs/recover"],
        );
        git.retain(|path, _| !path.starts_with(b"recover/"));
        let index = staged(&fs::read(self.root.join(".git/index")).unwrap());
        Moment {
            world: walk(self.root, &ASIDE),
            index,
            git,
        }
    }

    fn rules(&self, world: &World) -> Rules {
        Rules::of(world, &self.exclude)
    }

    /// What a checkpoint of this moment holds.
    fn kept(&self, moment: &Moment, also: &BTreeSet<Name>) -> Kept {
        let tracked = moment.index.keys().map(|(path, _)| path.clone()).collect();
        Kept::of(
            moment.world.clone(),
            &self.rules(&moment.world),
            &tracked,
            also,
        )
    }

    fn selected(&self, path: &[u8]) -> bool {
        self.how
            .path
            .as_ref()
            .is_none_or(|top| path.split(|byte| *byte == b'/').next() == Some(top.as_bytes()))
    }

    /// Asserts that the tree is this one and nothing of git's was touched.
    fn assert_is(&self, what: &str, world: &World, index: &Staged, git: &World) -> Moment {
        let found = self.moment();
        assert!(
            found.world == *world,
            "{what} (found, expected): {:#?}",
            differing(&found.world, world)
        );
        assert!(
            found.index == *index,
            "{what}: the index\n{:?}\n{index:?}",
            found.index
        );
        assert!(
            found.git == *git,
            "{what}: .git {:#?}",
            differing(&found.git, git)
        );
        found
    }

    /// Puts `target` back over `before` and compares. Returns what the safety checkpoint holds and what is there then.
    fn restore(
        &self,
        what: &str,
        before: &Moment,
        target: &Kept,
        index: &Staged,
        act: impl Fn(Edits) -> Outcome,
    ) -> Result<(Kept, Moment), Outcome> {
        let also = target
            .entries
            .iter()
            .filter(|path| self.selected(path))
            .cloned()
            .collect();
        let now = self.kept(before, &also);
        // Rules that no checkpoint holds are those of now.
        let sides = [
            (&now, self.rules(&now.world)),
            (target, self.rules(&target.world)),
        ];
        let keep = |path: &[u8], is_dir: bool| {
            sides
                .iter()
                .any(|(side, rules)| side.ignores(rules, path, is_dir))
        };
        let outcome = act(self.how.edits);
        assert!(
            outcome != Outcome::HandEdits,
            "{what}: nobody edited anything"
        );
        match (
            &outcome,
            after(&now, target, &keep, &|path| self.selected(path)),
        ) {
            (Outcome::Changed, Some(world)) => {
                Ok((now, self.assert_is(what, &world, index, &before.git)))
            }
            (Outcome::Unchanged, Some(world)) => {
                self.assert_is(what, &world, &before.index, &before.git);
                Err(outcome)
            }
            (Outcome::Conflicts, None) => {
                self.assert_is(what, &before.world, &before.index, &before.git);
                Err(outcome)
            }
            (outcome, world) => {
                let difference = world.map(|world| differing(&before.world, &world));
                panic!("{what}: {outcome:?}, but (before, expected): {difference:#?}")
            }
        }
    }
}

/// Plays the case of a seed in an empty folder.
pub fn play(seed: u64, folder: &Path, template: &Path, program: bool) -> End {
    let root = folder.join("work");
    copy(template, &root);
    fs::create_dir(folder.join("home")).unwrap();
    let mut rng = Rng::with_seed(seed);
    let names = names(&mut rng);
    let mut maker = Maker {
        root: &root,
        names,
        rng,
    };
    for _ in 0..maker.rng.usize(1..16) {
        maker.change();
    }
    let exclude = if maker.rng.u8(..4) == 0 {
        maker.exclude()
    } else {
        String::new()
    };
    maker.stage();
    let top = walk(&root, &ASIDE)
        .into_keys()
        .find(|path| path.iter().all(u8::is_ascii_lowercase));
    let how = How {
        path: top
            .filter(|_| maker.rng.u8(..6) == 0)
            .map(|top| String::from_utf8(top).unwrap()),
        edits: if maker.rng.bool() {
            Edits::Discard
        } else {
            Edits::Refuse
        },
        restore_index: maker.rng.u8(..4) == 0,
    };
    let driver = Driver::new(&root, &folder.join("home"), program);
    let mut case = Case {
        root: &root,
        driver,
        exclude,
        how,
    };

    let first = case.moment();
    let index = fs::read(root.join(".git/index")).unwrap();
    let target = case.kept(&first, &BTreeSet::new());
    let (_, id) = case.driver.create(false);
    case.assert_is("a capture", &first.world, &first.index, &first.git);
    assert_eq!(
        fs::read(root.join(".git/index")).unwrap(),
        index,
        "the index, byte for byte"
    );
    if maker.rng.u8(..6) == 0 {
        assert_eq!(
            case.driver.create(true),
            (false, id.clone()),
            "nothing changed"
        );
    }

    for _ in 0..maker.rng.usize(..10) {
        maker.change();
    }
    if maker.rng.u8(..5) == 0 {
        case.exclude = maker.exclude();
    }
    if maker.rng.u8(..3) == 0 {
        maker.stage();
    }
    let second = case.moment();
    if case.how.edits == Edits::Refuse {
        // Without it a person would have edited what differs.
        case.driver.create(false);
        case.assert_is(
            "a second capture",
            &second.world,
            &second.index,
            &second.git,
        );
    }
    if std::env::var_os("RECOVER_PROPERTY_SEED").is_some() {
        let listed = |kept: &BTreeSet<Name>| {
            kept.iter()
                .map(|path| path.escape_ascii().to_string())
                .collect::<Vec<_>>()
        };
        eprintln!(
            "{:?}\nrules {:?}\nthen {:?}",
            case.how,
            case.rules(&first.world),
            listed(&target.entries)
        );
        eprintln!(
            "tracked {:?}",
            second
                .index
                .keys()
                .map(|(path, _)| path.escape_ascii().to_string())
                .collect::<Vec<_>>()
        );
        eprintln!("rules {:?}", case.rules(&second.world));
        eprintln!(
            "changed since (now, then): {:#?}",
            differing(&second.world, &first.world)
        );
    }
    let whole = case.how.restore_index || case.how.path.is_none();
    let staged = if whole { &first.index } else { &second.index };
    let back = case.restore("the rollback", &second, &target, staged, |edits| {
        case.driver.rollback(
            &id,
            &How {
                edits,
                ..case.how.clone()
            },
        )
    });
    let (safety, third) = match back {
        Ok(both) => both,
        Err(Outcome::Unchanged) => return End::Nothing,
        Err(_) => return End::Refused,
    };
    let undone = case.restore("the undo", &third, &safety, &second.index, |edits| {
        case.driver.undo(edits)
    });
    let Ok((again, fourth)) = undone else {
        return End::UndoRefused;
    };
    let redone = case.restore("the redo", &fourth, &again, &third.index, |edits| {
        case.driver.redo(edits)
    });
    if redone.is_err() {
        End::RedoRefused
    } else {
        End::Whole
    }
}

/// Copies a folder.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let place = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).unwrap();
        }
    }
}
