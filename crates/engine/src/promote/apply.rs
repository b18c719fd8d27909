//! Applying an assessment, all or nothing.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use model::exec::Text;
use model::promotion::Counts;

use super::assess::Assessed;
use super::finish::{Scene, keep};
use super::garb::{Dress, Garb, now};
use super::journal::{FORMAT, Journal, Record};
use super::moves::{End, Move, Position, Tree};
use super::print::prints;
use super::reality::Reality;
use super::sprout::{Files, First, Links, build};
use super::stage::{Places, Stage};
use super::{Observe, PromoteError, Step};

/// Applies. `folder` is the promotion's own, named after it, and is made: journal and displaced files are kept there.
///
/// When this returns, all was promoted; when it fails, nothing was (unless it fails with [`PromoteError::TakeBack`], and
/// then [`super::recover`] takes it back). Whatever happens to this process meanwhile, `recover` brings one or the other.
pub fn apply(
    assessed: &Assessed<'_>,
    folder: &Path,
    observe: &mut Observe<'_>,
) -> Result<Counts, PromoteError> {
    if !assessed.report.is_clear() {
        return Err(PromoteError::NotClear);
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let targets = assessed.work.intents.iter().map(|intent| &intent.spot);
    let places = Places::choose(&assessed.reality, targets, &format!(".zeno-{name}"))?;
    let roots = assessed.reality.roots().map(|root| Text::from(root.to_owned())).collect();
    let begun = Record::Begun { format: FORMAT, roots, places: places.places.clone() };
    let mut journal = Journal::create(folder, begun)?;
    match run(assessed, &places, &mut journal, observe) {
        Ok(()) => {}
        Err(cause) => return Err(take_back(assessed, &mut journal, folder, cause, observe)),
    }
    let kept = keep(journal.places(), folder, observe).and_then(|()| journal.write(Record::Kept));
    if let Err(error) = kept {
        // It is promoted; recovering, or undoing, will put away the rest.
        tracing::warn!(folder = %folder.display(), error = &error as &dyn std::error::Error, "not tidy yet");
    }
    Ok(assessed.report.counts())
}

/// Everything up to the point of no return.
fn run(
    assessed: &Assessed<'_>,
    places: &Places,
    journal: &mut Journal,
    observe: &mut Observe<'_>,
) -> Result<(), PromoteError> {
    let reality = &assessed.reality;
    // Before the stages are made, which may be in one of them.
    let dresses = assessed.work.dresses.iter().map(|dress| refreshed(dress, reality));
    let dresses = dresses.collect::<Result<_, _>>()?;
    observe(Step::Bringing);
    assessed.commits.bring().map_err(PromoteError::Commits)?;
    let stages = places.places.iter().map(super::stage::Place::make).collect::<Result<Vec<_>, _>>()?;
    let moves = fill(assessed, places, &stages, observe)?;
    observe(Step::Preparing);
    let (mut refs, counts) = (assessed.commits.refs().into_iter(), assessed.report.counts());
    let (refs, more_refs) = (refs.next(), refs.collect());
    journal.write(Record::Ready { moves, dresses, refs, more_refs, counts })?;
    let (moves, dresses) = journal.moves();
    let scene = Scene { reality, stages: &stages, moves, dresses };
    for moved in moves {
        let path = reality.absolute(&moved.spot);
        observe(Step::Moving(&path));
        advance(&scene, moved, path)?;
    }
    check_folders(&scene)?;
    scene.dress(End::New, observe)?;
    // Whoever had one of them open may have gone on writing; it is the last moment to take their word.
    for moved in moves {
        let failed = |source| PromoteError::Move { path: reality.absolute(&moved.spot), source };
        none(moved.changed_in_slot(reality, &stages[moved.stage].opened, End::New).map_err(failed)?)?;
    }
    scene.sync()?;
    journal.drive_refs(End::New, observe)?;
    observe(Step::Committing);
    journal.write(Record::Applied)
}

/// A folder in which something moved since the assessment has another time to be given back.
fn refreshed(dress: &Dress, reality: &Reality) -> Result<Dress, PromoteError> {
    let failed = |source| PromoteError::looked(reality.absolute(&dress.spot), source);
    let mut dress = dress.clone();
    if let Some((_, stat)) = dress.open(reality).map_err(failed)?
        && dress.before.mtime != Some(stat.mtime)
    {
        dress.before.mtime = Some(stat.mtime);
        dress.after.mtime = Some(now());
    }
    Ok(dress)
}

/// Builds everything that is to come.
fn fill(
    assessed: &Assessed<'_>,
    places: &Places,
    stages: &[Stage],
    observe: &mut Observe<'_>,
) -> Result<Vec<Move>, PromoteError> {
    let anchors = assessed.work.anchors.iter();
    let standing: Links = anchors.map(|(file, anchor)| (*file, First::Stands(anchor.clone()))).collect();
    let mut files: HashMap<usize, Files> = HashMap::new();
    let mut moves = Vec::new();
    for (number, intent) in assessed.work.intents.iter().enumerate() {
        let path = assessed.reality.absolute(&intent.spot);
        observe(Step::Staging(&path));
        let stage = places.of[number];
        let slot = number.to_string();
        let (mut becomes, mut printed) = (None, Vec::new());
        if !intent.becomes.is_empty() {
            let failed = |source| PromoteError::Build { path: path.clone(), source };
            let opened = &stages[stage].opened;
            let files = files.entry(stage).or_insert_with(|| Files::Copied(standing.clone()));
            build(&intent.becomes, &assessed.reality, opened, slot.as_bytes(), files).map_err(failed)?;
            let tree = Tree::of(opened, slot.as_bytes()).map_err(failed)?;
            let tree = tree.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
            printed = prints(opened, slot.as_bytes(), &tree).map_err(failed)?;
            becomes = Some(tree);
        }
        let (spot, was) = (intent.spot.clone(), intent.was.clone());
        moves.push(Move { spot, stage, slot, was, becomes, prints: printed });
    }
    for (number, stage) in stages.iter().enumerate() {
        let slots: Vec<&str> =
            moves.iter().filter(|moved| moved.stage == number).map(|moved| moved.slot.as_str()).collect();
        stage.sync(&slots).map_err(|source| PromoteError::Sync { path: stage.path.clone(), source })?;
    }
    Ok(moves)
}

/// Makes one move, if what stands there is what was assessed, and looks again at what it displaced.
fn advance(scene: &Scene<'_>, moved: &Move, path: PathBuf) -> Result<(), PromoteError> {
    let failed = |source| PromoteError::Move { path: path.clone(), source };
    let stage = &scene.stages[moved.stage].opened;
    let position = moved.position(scene.reality, stage).map_err(failed)?;
    if position != Position::At(End::Old) {
        return Err(PromoteError::MovedOn { paths: vec![path] });
    }
    none(moved.changed_at_path(scene.reality, End::Old).map_err(failed)?)?;
    if !moved.drive(scene.reality, stage, End::New).map_err(failed)? {
        return Err(PromoteError::MovedOn { paths: vec![path] });
    }
    none(moved.changed_in_slot(scene.reality, stage, End::New).map_err(failed)?)
}

/// The folders that stay must still be the ones that were assessed, and look like them. Their times are ours by now.
fn check_folders(scene: &Scene<'_>) -> Result<(), PromoteError> {
    for dress in scene.dresses {
        let path = scene.reality.absolute(&dress.spot);
        let failed = |source| PromoteError::looked(path.clone(), source);
        let is_as_before = match dress.open(scene.reality).map_err(failed)? {
            Some((folder, stat)) => {
                let now = Garb::of_reality(&folder, &stat).map_err(failed)?;
                now.is_between(&dress.before, &dress.before)
            }
            None => false,
        };
        if !is_as_before {
            return Err(PromoteError::MovedOn { paths: vec![path] });
        }
    }
    Ok(())
}

fn none(paths: Vec<PathBuf>) -> Result<(), PromoteError> {
    if paths.is_empty() { Ok(()) } else { Err(PromoteError::MovedOn { paths }) }
}

/// Takes everything back and says why.
fn take_back(
    assessed: &Assessed<'_>,
    journal: &mut Journal,
    folder: &Path,
    cause: PromoteError,
    observe: &mut Observe<'_>,
) -> PromoteError {
    match super::recover::take_back(&assessed.reality, journal, folder, observe) {
        Ok(left) if left.is_empty() => cause,
        Ok(left) => PromoteError::Left { left },
        Err(source) => PromoteError::TakeBack { cause: Box::new(cause), source: Box::new(source) },
    }
}
