//! What a program says that it was refused: the paths beside the system's words for it.

/// What the note of an attempt begins with that was refused writes; the paths follow.
pub(crate) const REFUSED: &str = "refused to write: ";

/// The system's words for it.
const WORDS: [&str; 4] = [
    "permission denied",
    "eacces",
    "operation not permitted",
    "invalid cross-device link",
];
/// Longer lines are no message.
const LONGEST: usize = 4096;

/// The paths in an output's lines that say so, each once: absolute or relative ones that lead out of a folder or home.
pub(crate) fn refused_paths(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    // Within records a line's end is escaped.
    let lines = text.split('\n').flat_map(|line| line.split("\\n"));
    let says = |line: &&str| {
        let line = line.to_ascii_lowercase();
        WORDS.iter().any(|word| line.contains(word))
    };
    let mut found: Vec<String> = Vec::new();
    for path in lines
        .filter(|line| line.len() <= LONGEST)
        .filter(says)
        .flat_map(paths)
    {
        if !found.iter().any(|known| known == path) {
            found.push(path.to_owned());
        }
    }
    found
}

fn paths(line: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| c.is_whitespace() || "'\"`\\,;:=()[]{}<>‘’“”".contains(c);
    let words = line.split(is_between);
    words.filter(|word| {
        ["/", "~/", "../"]
            .iter()
            .any(|start| word.starts_with(start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_what_programs_say() {
        for (line, expected) in [
            (
                "rm: cannot remove '/home/u/x': Permission denied",
                vec!["/home/u/x"],
            ),
            (
                "sh: 1: cannot create ../other/f: Permission denied",
                vec!["../other/f"],
            ),
            ("touch: cannot touch ‘~/a’: Permission denied", vec!["~/a"]),
            (
                r#"{"content":"mkdir: cannot create directory '/o/d': Permission denied\nall in /home/u/x"}"#,
                vec!["/o/d"],
            ),
            (
                "PermissionError: [Errno 13] Permission denied: '/home/u/y'",
                vec!["/home/u/y"],
            ),
            (
                "Error: EACCES: permission denied, open '/home/u/z'",
                vec!["/home/u/z"],
            ),
            ("cannot open /etc/x: No such file or directory", vec![]),
        ] {
            assert_eq!(refused_paths(line.as_bytes()), expected, "{line}");
        }
    }
}
