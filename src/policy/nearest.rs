//! "Did you mean …?": the known name that is nearest to an unknown one.

/// The candidate that is most like `text`.
pub(crate) fn nearest<'a>(
    text: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let by_distance =
        candidates.map(|candidate| (strsim::damerau_levenshtein(text, candidate), candidate));
    by_distance
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The candidate that `text` may be a slip of: at most one letter in three is another one.
pub(crate) fn misspelt<'a>(
    text: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let slips = (text.chars().count() / 3).max(1);
    let close =
        |candidate: &&str| candidate.len().abs_diff(text.len()) <= slips && *candidate != text;
    nearest(text, candidates.filter(close))
        .filter(|near| strsim::damerau_levenshtein(text, near) <= slips)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_none() {
        let known = ["cat", "claude", "cargo", "codex"];
        for (text, expected) in [
            ("cluade", Some("claude")),
            ("crago", Some("cargo")),
            ("npx", None),
            ("no-such-agent", None),
            ("cta", Some("cat")),
        ] {
            assert_eq!(misspelt(text, known.into_iter()), expected, "{text}");
        }
    }
}
