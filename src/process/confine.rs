//! Where a child may write: this very program, as a helper, confines itself and then becomes the command.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use super::Stderr;
use crate::model::spec::Places;
use crate::os::confined;

/// What the helper is called with before the places and the command.
pub(crate) const CONFINED: &str = "__confined";

/// The command line of the helper `program` that becomes `argv` and writes in these places only.
pub(super) fn helper_for(
    program: &Path,
    places: &Places,
    argv: &[OsString],
) -> serde_json::Result<Vec<OsString>> {
    let places = serde_json::to_string(places)?;
    let helper = [program.into(), CONFINED.into(), places.into()];
    Ok(helper.iter().chain(argv).cloned().collect())
}

/// Becomes the command, confined; `words` are those after [`CONFINED`]. Only returns if that failed, with what to exit with: why is
/// printed on stderr.
pub(crate) fn exec_confined(words: &[OsString]) -> u8 {
    let Some((places, argv)) = words.split_first() else {
        return 126;
    };
    let places = places
        .to_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let Some(Places { write, never }) = places else {
        return 126;
    };
    let error = match confined(argv, &write, &never) {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    };
    let program = argv.first().map(|program| program.to_string_lossy());
    let program = program.unwrap_or_default();
    // With nobody there to read it, the exit code says it.
    let _ = writeln!(Stderr, "recover: cannot start {program} confined: {error}");
    126
}
