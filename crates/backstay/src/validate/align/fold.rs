//! Finds the one member of an enum that a word means but for its spelling.

use serde_json::Value;

/// The one member that is the same as `word` but for case, full-width letters, `-`, `_` and spaces.
/// `None`: there is none, or more than one.
pub(super) fn only_member<'v>(word: &str, listed: &'v [Value]) -> Option<&'v str> {
    let wanted = folded(word);
    if wanted.is_empty() {
        return None;
    }
    let members = listed.iter().filter_map(Value::as_str);
    let mut hits = members.filter(|member| folded(member) == wanted);
    let first = hits.next()?;
    hits.all(|other| other == first).then_some(first)
}

fn folded(word: &str) -> String {
    let letters =
        word.chars().map(narrow).filter(|c| !matches!(c, '-' | '_') && !c.is_whitespace());
    letters.flat_map(char::to_lowercase).collect()
}

/// The ASCII letter of a full-width one.
fn narrow(letter: char) -> char {
    match letter {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(letter) - 0xfee0).unwrap_or(letter),
        letter => letter,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::only_member;

    #[test]
    fn a_word_folds_into_exactly_one_member_or_into_none() {
        let listed = [json!("IN_PROGRESS"), json!("on-hold"), json!("onhold"), json!(3)];
        for (word, member) in [
            ("in progress", Some("IN_PROGRESS")),
            ("In-Progress", Some("IN_PROGRESS")),
            ("ＩＮ＿ＰＲＯＧＲＥＳＳ", Some("IN_PROGRESS")),
            ("On Hold", None),
            ("in progres", None),
            ("3", None),
            ("", None),
            ("-_ ", None),
        ] {
            assert_eq!(only_member(word, &listed), member, "{word}");
        }
    }
}
