//! What the run last wrote to the paths of a restore, layer by layer: anything else there is an edit.

use std::collections::{BTreeMap, BTreeSet};

use super::head;
use super::nested::{inside, is_below};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::stored::{baseline, load_latest};
use crate::git::checkpoint::{NestedCopy, StoredCheckpoint};
use crate::git::tree::{TreeIgnores, TreeLookup};
use crate::git::{Error as GitError, Repo};
use crate::model::{Entry, Manifest, RepoPath, RunKey, State};
use crate::policy::restore::{Baseline, Selection};

/// What the run last wrote to some paths.
pub(super) struct Layer {
    /// `None` where the checkpoint is gone: nothing is known then.
    pub stored: Option<StoredCheckpoint>,
    /// Its base commit, where that may be what was restored of it.
    pub base: Option<StoredCheckpoint>,
    pub paths: Selection,
    /// What it says of nested repositories that take part.
    nested: Vec<LayerPart>,
    /// What was left as it was.
    left: Vec<RepoPath>,
    /// Whether neither the checkpoint nor any before it can be read: everything may be an edit then.
    damaged: bool,
}

/// What the run last wrote in this work tree, layer by layer.
pub(super) fn layers(context: &Context, state: &State, here: &Manifest) -> Result<Vec<Layer>> {
    let repo = context.repo()?;
    let mut layers = Vec::new();
    for layer in baseline(context, state) {
        let (mut stored, mut base, mut nested) = (None, None, Vec::new());
        let checkpoint = state.checkpoint(&layer.checkpoint_id);
        let found = checkpoint
            .map(|checkpoint| load_latest(context, state, checkpoint))
            .transpose()?
            .flatten();
        let damaged = checkpoint.is_some() && found.is_none();
        if let Some((checkpoint, loaded)) = found {
            if head::is_beginning_elsewhere(context, checkpoint)? {
                base = loaded.base(repo, here)?;
            }
            nested = match LayerPart::all(repo, &loaded, &layer.left) {
                Err(error) if error.kind == ErrorKind::Corrupt => Vec::new(),
                parts => parts?,
            };
            stored = Some(loaded);
        }
        let paths = Selection::globs(&layer.paths).map_err(|error| {
            let message = format!("a recorded path is no glob: {error}");
            Error::new(ErrorKind::Corrupt, message)
        })?;
        layers.push(Layer {
            stored,
            base,
            paths,
            nested,
            left: layer.left.clone(),
            damaged,
        });
    }
    Ok(layers)
}

/// The files that this program's output went to when the target, and what the run last wrote, were captured.
pub(super) fn recorded_outputs(target: &StoredCheckpoint, layers: &[Layer]) -> BTreeSet<RepoPath> {
    let layers = layers.iter().filter_map(|layer| layer.stored.as_ref());
    layers
        .chain([target])
        .flat_map(|stored| stored.manifest.outputs.iter().cloned())
        .collect()
}

/// What was last written to some paths.
#[derive(Debug, Default)]
pub(super) struct LastWritten {
    pub baselines: BTreeMap<RepoPath, Baseline>,
    /// Why paths count as edited that nobody edited by hand, as far as is known.
    pub edited: BTreeMap<RepoPath, String>,
    /// Whether no layer covers everything: what HEAD does not have as it is counts as edited then.
    pub is_since_head: bool,
}

/// What an attempt has hidden from git, and so from the checkpoint at its end: that checkpoint says nothing of it.
pub(super) struct Hidden<'a> {
    /// Paths that the target has and that git ignores now.
    pub paths: &'a BTreeSet<RepoPath>,
    /// Rules that were put back since.
    pub rules: Option<&'a [u8]>,
}

impl LastWritten {
    /// Reads what `layers` have of the paths. What another run changed since, by `others`, and what only a damaged checkpoint
    /// knows, counts as edited.
    pub(super) fn of(
        context: &Context,
        lookup: &TreeLookup<'_>,
        (layers, here): (&[Layer], &Manifest),
        others: &BTreeMap<RepoPath, &RunKey>,
        hidden: &Hidden<'_>,
        paths: &BTreeSet<&RepoPath>,
    ) -> Result<Self> {
        let repo = context.repo()?;
        let since_head = edited_since_head(context, layers, here, paths)?;
        let mut known = Vec::new();
        for layer in layers {
            let ignored = layer.stored.as_ref().map(|stored| {
                TreeIgnores::new(repo, lookup, stored.view())?.with_rules(hidden.rules)
            });
            let found = match ignored {
                None | Some(Err(GitError::Corrupt(_))) => None,
                Some(ignored) => layer.stored.as_ref().zip(Some(ignored?)),
            };
            known.push((layer, found));
        }
        let mut out = Self {
            is_since_head: since_head.is_some(),
            ..Self::default()
        };
        for path in paths.iter().copied() {
            let layer = known.iter().rfind(|(layer, _)| layer.paths.matches(path));
            let (baseline, why) = match (others.get(path), layer) {
                (Some(run), _) => (Baseline::Another, Some(format!("changed by run {run}"))),
                (None, None) => match &since_head {
                    Some(edited) if edited.contains(path) => (Baseline::Another, None),
                    _ => (Baseline::Unknown, None),
                },
                (None, Some((layer, _)))
                    if layer.left.iter().any(|left| path.starts_with(left)) =>
                {
                    (Baseline::Unknown, None)
                }
                (None, Some((layer, Some((stored, ignored))))) => {
                    match layer.baseline(lookup, stored, ignored, hidden, path) {
                        Err(error) if error.kind == ErrorKind::Corrupt => uncertain(),
                        baseline => (baseline?, None),
                    }
                }
                (None, Some((layer, None))) if layer.damaged || layer.stored.is_some() => {
                    uncertain()
                }
                (None, Some((_, None))) => (Baseline::Unknown, None),
            };
            out.baselines.insert(path.clone(), baseline);
            out.edited.extend(why.map(|why| (path.clone(), why)));
        }
        Ok(out)
    }
}

/// A path counts as edited of which a damaged checkpoint does not say whether it is.
fn uncertain() -> (Baseline, Option<String>) {
    let why = "changed, and as a checkpoint is damaged it is not known by whom";
    (Baseline::Another, Some(why.to_owned()))
}

impl Layer {
    fn baseline(
        &self,
        lookup: &TreeLookup<'_>,
        stored: &StoredCheckpoint,
        ignored: &TreeIgnores<'_>,
        hidden: &Hidden<'_>,
        path: &RepoPath,
    ) -> Result<Baseline> {
        if let Some(known) = LayerPart::baseline(&self.nested, lookup, path)? {
            return Ok(known);
        }
        Ok(match stored.view().entry(lookup, path)? {
            // Which of the two was restored is not recorded: only where they agree is it known.
            entry if let Some(base) = &self.base => {
                let committed = base.view().entry(lookup, path)?;
                let what = |entry: &Entry| (entry.kind, entry.oid.clone());
                let agree = committed.as_ref().map(what) == entry.as_ref().map(what);
                committed
                    .filter(|_| agree)
                    .map_or(Baseline::Unknown, Baseline::Present)
            }
            Some(entry) => Baseline::Present(entry),
            // A folder whose content is ignored by now looks empty: that is nobody's edit.
            None if stored.view().is_folder(lookup, path)? => Baseline::Unknown,
            // What was left out then was not examined.
            None if hidden.paths.contains(path) => Baseline::Unknown,
            None if ignored.says_nothing_of(path)? => Baseline::Unknown,
            None => Baseline::Absent,
        })
    }
}

/// Of `paths`, those that count as edited where no layer covers everything, as nothing was recorded of this work tree then:
/// those that HEAD does not have as they are, and those that git is not to compare. Without git, all that are there.
fn edited_since_head(
    context: &Context,
    layers: &[Layer],
    here: &Manifest,
    paths: &BTreeSet<&RepoPath>,
) -> Result<Option<BTreeSet<RepoPath>>> {
    if layers.iter().any(|layer| layer.paths.is_all()) {
        return Ok(None);
    }
    let repo = context.repo()?;
    let not_compared: BTreeSet<&RepoPath> = here
        .index_extras
        .iter()
        .filter(|extra| extra.assume_unchanged || extra.skip_worktree)
        .map(|extra| &extra.path)
        .collect();
    let (mut edited, compared): (BTreeSet<_>, BTreeSet<_>) = paths
        .iter()
        .map(|path| (*path).clone())
        .partition(|path| !context.has_git() || not_compared.contains(path));
    edited.retain(|path| {
        let there = path.below(repo.workdir()).symlink_metadata();
        there.is_ok_and(|there| !there.is_dir())
    });
    if context.has_git() {
        edited.extend(repo.uncommitted(&compared)?);
    }
    Ok(Some(edited))
}

/// What a layer of what the run last wrote says of a nested repository.
pub(super) struct LayerPart {
    path: RepoPath,
    /// `None` where nothing is known.
    copy: Option<NestedCopy>,
}

impl LayerPart {
    /// What a checkpoint that the run wrote has of all nested repositories; `left` are those that a restore of it has left
    /// alone.
    pub(crate) fn all(
        outer: &Repo,
        stored: &StoredCheckpoint,
        left: &[RepoPath],
    ) -> Result<Vec<Self>> {
        let mut parts = Vec::new();
        let mut open = Vec::new();
        for link in &stored.manifest.nested {
            open.push((link.path.clone(), stored.nested_copy(outer, &link.path)?));
        }
        while let Some((path, copy)) = open.pop() {
            let copy = copy.filter(|_| !left.iter().any(|left| path.starts_with(left)));
            for link in copy.iter().flat_map(|copy| &copy.manifest.nested) {
                let inner = copy
                    .as_ref()
                    .map(|copy| copy.inner(outer, &link.path))
                    .transpose()?
                    .flatten();
                open.push((path.join(link.path.as_bytes()), inner));
            }
            parts.push(Self { path, copy });
        }
        Ok(parts)
    }

    /// What the layer has at a path below any of these; `None` where it is of none of them.
    pub(crate) fn baseline(
        parts: &[Self],
        lookup: &TreeLookup<'_>,
        path: &RepoPath,
    ) -> Result<Option<Baseline>> {
        let of = parts.iter().filter(|part| is_below(path, &part.path));
        let Some(part) = of.max_by_key(|part| part.path.as_bytes().len()) else {
            return Ok(None);
        };
        let Some(copy) = &part.copy else {
            return Ok(Some(Baseline::Unknown));
        };
        let path = inside(path, &part.path);
        Ok(Some(match copy.view().entry(lookup, &path)? {
            Some(entry) => Baseline::Present(entry),
            None if copy.view().is_folder(lookup, &path)? => Baseline::Unknown,
            None => Baseline::Absent,
        }))
    }
}
