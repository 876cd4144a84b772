//! Strict JSON on one line, with every number and string as it was written.

/// `text`, which is strict JSON, without the white space between its tokens.
pub(super) fn minified(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_inside = false;
    let mut is_escaped = false;
    for letter in text.chars() {
        if is_inside {
            is_inside = is_escaped || letter != '"';
            is_escaped = letter == '\\' && !is_escaped;
            out.push(letter);
        } else if !matches!(letter, ' ' | '\t' | '\n' | '\r') {
            is_inside = letter == '"';
            out.push(letter);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::minified;

    #[test]
    fn space_goes_between_tokens_only() {
        for (text, one_line) in [
            (
                " {\n \"a b\" : [1.10, 2e+5 ,\t\" \\\" x \\\\\"\r\n]} ",
                r#"{"a b":[1.10,2e+5," \" x \\"]}"#,
            ),
            (" 12345678901234567890123 ", "12345678901234567890123"),
            ("[ ]", "[]"),
            ("\"\u{2028} é\"", "\"\u{2028} é\""),
        ] {
            assert_eq!(minified(text), one_line);
        }
    }
}
