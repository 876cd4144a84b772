//! Reads JSON of whole bodies and events.

use serde::Deserialize;

/// As `serde_json::from_slice`, but looks whether `text` is UTF-8 once for all of it, not for each of its strings.
///
/// # Errors
/// As `serde_json::from_slice`: it is not JSON, not UTF-8, or not of this form.
pub(crate) fn read<'a, T: Deserialize<'a>>(text: &'a [u8]) -> serde_json::Result<T> {
    match std::str::from_utf8(text) {
        Ok(text) => serde_json::from_str(text),
        // It says where.
        Err(_) => serde_json::from_slice(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_is_wrong_is_told_as_for_bytes() {
        for text in [
            &b"{\"a\":\"\xff\"}"[..],
            b"{\"a\xc3\":1}",
            b"\xff",
            b"{\"a\":1",
            b"[1,]",
            b"",
            b"{\"a\":\"\\ud800\"}",
        ] {
            let told = read::<Value>(text).unwrap_err().to_string();
            assert_eq!(told, serde_json::from_slice::<Value>(text).unwrap_err().to_string());
        }
    }

    #[test]
    fn texts_of_every_script_come_as_they_are() {
        let text = "{\"é\":[\"日本\",\"\\u00e9\",\"🦀\"]}";
        assert_eq!(read::<Value>(text.as_bytes()).unwrap()["é"][2], "🦀");
    }
}
