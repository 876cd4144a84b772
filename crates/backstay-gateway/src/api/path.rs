//! What a request's path means once it is read as a provider's server would read it.
//!
//! Servers differ in what they make of `..`, `%2e`, `//` and `\`. A path that one of them could
//! take for another is not handed on: behind it may be a generating path without its checks, or
//! something the operator's key should not open.

use backstay_wire::Dialect;

/// The dialect of a generating path and how it is written, for any spelling of it: with or without
/// `/v1`, percent-encoded, with slashes at its end.
pub(crate) fn generating(path: &str) -> Option<(Dialect, &'static str)> {
    // The hot spelling costs nothing.
    match path {
        "/v1/chat/completions" => return Some((Dialect::OpenaiChat, "/v1/chat/completions")),
        "/v1/messages" => return Some((Dialect::Anthropic, "/v1/messages")),
        _ => {}
    }
    let decoded = String::from_utf8(decoded(path)).ok()?;
    match decoded.trim_end_matches('/') {
        "/v1/chat/completions" | "/chat/completions" => {
            Some((Dialect::OpenaiChat, "/v1/chat/completions"))
        }
        "/v1/messages" | "/messages" => Some((Dialect::Anthropic, "/v1/messages")),
        _ => None,
    }
}

/// Whether it is Anthropic's messages, or a path below them, in any spelling. Paths of others hold that
/// word too: `/v1/threads/ID/messages` is `OpenAI`'s.
pub(crate) fn is_of_messages(path: &str) -> bool {
    let decoded = decoded(path);
    let path = decoded.strip_prefix(b"/v1").unwrap_or(&decoded);
    path.strip_prefix(b"/messages").is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Why a path is not handed on. `None`: every server reads it as it is written. One slash at the
/// end is fine.
pub(crate) fn ambiguous(path: &str) -> Option<&'static str> {
    let decoded = decoded(path);
    if decoded.contains(&b'\\') {
        return Some("a backslash");
    }
    let inner = decoded.strip_prefix(b"/").unwrap_or(&decoded);
    let inner = inner.strip_suffix(b"/").unwrap_or(inner);
    inner.split(|byte| *byte == b'/').find_map(|segment| match segment {
        b"." | b".." => Some("a `.` or `..` segment"),
        b"" => Some("an empty segment"),
        _ => None,
    })
}

/// A piece of a path as it was meant: `a%2Fb` is `a/b`. Bytes that are no text become `�`.
pub(super) fn plain(piece: &str) -> String {
    String::from_utf8_lossy(&decoded(piece)).into_owned()
}

/// The path with its `%XX` resolved, once. What is no escape stays.
fn decoded(path: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        let escape = match rest {
            [b'%', high, low, ..] => digit(*high).zip(digit(*low)),
            _ => None,
        };
        if let Some((high, low)) = escape {
            out.push(high << 4 | low);
            rest = rest.get(3..).unwrap_or_default();
        } else {
            out.push(*first);
            rest = after;
        }
    }
    out
}

fn digit(letter: u8) -> Option<u8> {
    char::from(letter).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use backstay_wire::Dialect;

    use super::{ambiguous, generating, is_of_messages};

    #[test]
    fn every_spelling_of_a_generating_path_is_known() {
        for path in [
            "/v1/chat/completions",
            "/v1/chat/completions/",
            "/v1/chat/completions//",
            "/chat/completions",
            "/v1/%63hat/completions",
            "/v1/chat%2Fcompletions",
        ] {
            let found = generating(path);
            assert_eq!(found, Some((Dialect::OpenaiChat, "/v1/chat/completions")), "{path}");
        }
        for path in ["/v1/messages", "/messages/", "/v1/%6Dessages"] {
            assert_eq!(generating(path), Some((Dialect::Anthropic, "/v1/messages")), "{path}");
        }
        for path in ["/v1/messages/count_tokens", "/v1/embeddings", "/", "", "/v1/%ff", "/v1/%6"] {
            assert_eq!(generating(path), None, "{path}");
        }
    }

    #[test]
    fn messages_of_a_thread_are_not_anthropics() {
        for path in ["/v1/messages", "/messages/", "/v1/messages/count_tokens", "/v1/%6Dessages/x"]
        {
            assert!(is_of_messages(path), "{path}");
        }
        for path in
            ["/v1/threads/t_1/messages", "/v1/messagesx", "/v1/conversations/messages", "/v1/"]
        {
            assert!(!is_of_messages(path), "{path}");
        }
    }

    #[test]
    fn a_path_that_servers_read_in_two_ways_is_found() {
        for path in [
            "/v1//chat/completions",
            "/v1/../admin",
            "/v1/x/%2e%2E/admin",
            "/v1/x%2f..%2fadmin",
            "/v1/./x",
            "/v1/..",
            "/v1/x\\y",
            "/v1/x%5Cy",
            "/v1/x//",
        ] {
            assert!(ambiguous(path).is_some(), "{path}");
        }
        for path in
            ["/v1/embeddings", "/v1/files/", "/v1/models/a%2Fb", "/v1/...", "/v1/a..b", "/v1/100%"]
        {
            assert_eq!(ambiguous(path), None, "{path}");
        }
    }
}
