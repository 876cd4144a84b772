//! Steps of a JSON pointer (RFC 6901): `~` is written `~0`, and `/` is written `~1`.

use std::borrow::Cow;

/// `key` as a step of a pointer. Borrowed where nothing has to be escaped, as in most keys.
pub fn escape(key: &str) -> Cow<'_, str> {
    if !key.contains(['~', '/']) {
        return Cow::Borrowed(key);
    }
    Cow::Owned(key.replace('~', "~0").replace('/', "~1"))
}

/// The key that `step` stands for. Borrowed where nothing was escaped. A `~` before anything but `0`
/// or `1` stays.
pub fn unescape(step: &str) -> Cow<'_, str> {
    if !step.contains('~') {
        return Cow::Borrowed(step);
    }
    Cow::Owned(step.replace("~1", "/").replace("~0", "~"))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::{escape, unescape};

    #[test]
    fn a_key_comes_back_from_its_step() {
        for (key, step) in [("", ""), ("a", "a"), ("a/b", "a~1b"), ("~", "~0"), ("~1", "~01")] {
            assert_eq!((escape(key), unescape(step)), (step.into(), key.into()));
        }
        assert_eq!(unescape("a~2"), "a~2");
    }

    #[test]
    fn a_key_without_marks_is_not_copied() {
        assert!(matches!((escape("käse"), unescape("käse")), (Cow::Borrowed(_), Cow::Borrowed(_))));
    }
}
