//! Finds the name that was probably meant.

/// Names longer than this are not compared: no key is, and the cost grows with the square.
const MAX_NAME: usize = 64;

/// The one of `names` nearest to `word`, if it is near enough to be what was meant: at most a third
/// of its characters added, left out, changed or swapped with their neighbour.
pub(super) fn nearest<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let limit = (word.chars().count() / 3).max(1);
    names
        .into_iter()
        .filter_map(|name| Some((distance(word, name)?, name)))
        .filter(|&(edits, _)| edits <= limit)
        .min_by_key(|&(edits, _)| edits)
        .map(|(_, name)| name)
}

/// Edits between two names, neighbours swapped counting as one; `None` where one is too long.
fn distance(a: &str, b: &str) -> Option<usize> {
    let a: Vec<char> = a.chars().take(MAX_NAME + 1).collect();
    let b: Vec<char> = b.chars().take(MAX_NAME + 1).collect();
    if a.len() > MAX_NAME || b.len() > MAX_NAME {
        return None;
    }
    let mut older: Vec<usize> = Vec::new();
    let mut old: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let change = old[j] + usize::from(x != y);
            let mut best = change.min(old[j + 1] + 1).min(row[j] + 1);
            let swapped = i > 0 && j > 0 && a[i - 1] == *y && b[j - 1] == *x;
            if swapped {
                best = best.min(older[j - 1] + 1);
            }
            row.push(best);
        }
        older = std::mem::replace(&mut old, row);
    }
    old.last().copied()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_its_name_and_a_stranger_none() {
        let keys = ["deadline", "tiers", "timeouts", "schema"];
        for (word, meant) in [
            ("deadlin", Some("deadline")),
            ("deadlnie", Some("deadline")),
            ("teirs", Some("tiers")),
            ("timeout", Some("timeouts")),
            ("Schema", Some("schema")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, keys), meant, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000), keys), None);
    }
}
