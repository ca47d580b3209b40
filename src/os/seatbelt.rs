//! The profile with which `sandbox-exec` of macOS confines writes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The text of a profile under which writes go only to what is below `write`, and to nothing below `never`.
pub(crate) fn profile(write: &[PathBuf], never: &[PathBuf]) -> String {
    let mut text = "(version 1)\n(allow default)\n(deny file-write*)\n".to_owned();
    for (word, paths) in [("allow", write), ("deny", never)] {
        for path in paths {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "({word} file-write* (subpath {}))", quoted(path));
        }
    }
    text
}

fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_never_written_goes_before_what_may_be() {
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        let text = profile(
            &paths(&["/Users/me/a \"b\"", "/private/tmp"]),
            &paths(&["/Users/me/a/.git/hooks"]),
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "(version 1)",
                "(allow default)",
                "(deny file-write*)",
                r#"(allow file-write* (subpath "/Users/me/a \"b\""))"#,
                r#"(allow file-write* (subpath "/private/tmp"))"#,
                r#"(deny file-write* (subpath "/Users/me/a/.git/hooks"))"#,
            ]
        );
    }
}
