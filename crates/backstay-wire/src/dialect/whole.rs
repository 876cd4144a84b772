//! Whether a JSON object that comes in fragments is whole, without keeping it.

/// Follows the brackets and strings of one JSON value. It does not judge the value's grammar.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Json {
    depth: u32,
    text: Text,
    begun: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    Inside,
    /// After a backslash.
    Escaped,
}

impl Json {
    /// Takes the next fragment.
    pub(crate) fn push(&mut self, fragment: &str) {
        for byte in fragment.bytes() {
            self.text = match (self.text, byte) {
                (Text::Inside, b'\\') => Text::Escaped,
                (Text::Inside, b'"') => Text::Outside,
                (Text::Inside | Text::Escaped, _) | (Text::Outside, b'"') => Text::Inside,
                (Text::Outside, b'{' | b'[') => {
                    self.depth = self.depth.saturating_add(1);
                    self.begun = true;
                    Text::Outside
                }
                (Text::Outside, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    Text::Outside
                }
                (Text::Outside, _) => Text::Outside,
            };
        }
    }

    /// Whether an object or array began and every bracket is closed.
    pub(crate) fn is_whole(self) -> bool {
        self.begun && self.depth == 0 && self.text == Text::Outside
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn only_a_closed_object_is_whole() {
        let whole = |fragments: &[&str]| {
            let mut json = Json::default();
            for fragment in fragments {
                json.push(fragment);
            }
            json.is_whole()
        };
        assert!(whole(&["{}"]));
        assert!(whole(&["{\"a\":", "[{}", "]}", "\n"]));
        assert!(whole(&["{\"a\":\"}\\\"", "{\"}"]));
        assert!(!whole(&[]));
        assert!(!whole(&[" "]));
        assert!(!whole(&["{\"a\":\"}"]));
        assert!(!whole(&["{\"a\":\"}\\\"}"]));
        assert!(!whole(&["{", "[}"]));
    }
}
