//! What an error's own words say of its kind, where no status does.

/// The beginnings of words and sentences, without blanks and marks, and the status they stand for.
/// Providers' types and codes, the codes of gRPC, and the reasons of HTTP.
const WORDS: &[(&str, u16)] = &[
    ("overloaded", 529),
    ("engineoverloaded", 529),
    ("serverisoverloaded", 529),
    ("capacityexceeded", 503),
    ("serviceunavailable", 503),
    ("servicetemporarilyunavailable", 503),
    ("unavailable", 503),
    ("ratelimit", 429),
    ("toomanyrequests", 429),
    ("throttl", 429),
    ("resourceexhausted", 429),
    ("authenticationerror", 401),
    ("invalidapikey", 401),
    ("unauthenticated", 401),
    ("unauthorized", 401),
    ("permission", 403),
    ("forbidden", 403),
    ("billing", 402),
    ("insufficientquota", 402),
    ("insufficientbalance", 402),
    ("insufficientcredit", 402),
    ("paymentrequired", 402),
    ("modelnotfound", 404),
    ("notfound", 404),
    ("requesttoolarge", 413),
    ("payloadtoolarge", 413),
    ("timeout", 504),
    ("timedout", 504),
    ("deadlineexceeded", 504),
    ("gatewaytimeout", 504),
    ("requesttimeout", 504),
    ("badgateway", 502),
    ("internalservererror", 500),
    ("invalidrequest", 400),
    ("invalidargument", 400),
    ("failedprecondition", 400),
    ("badrequest", 400),
];

/// Types that say no more than that there is an error.
const PLAIN: &[&str] = &[
    "error",
    "apierror",
    "internalerror",
    "internalservererror",
    "servererror",
    "upstreamerror",
    "providererror",
    "streamerror",
    "unknown",
    "unknownerror",
    "internal",
];

/// What stands before a status in a sentence, apart from marks and blanks.
const BEFORE: &[&str] = &["http", "http/1.1", "http/2", "status", "code", "error"];

/// As much of a sentence as is looked at, in bytes: a status stands near its beginning.
const MAX_SENTENCE: usize = 500;

/// The status that a word, or how a sentence begins, stands for.
pub(super) fn by_word(words: &str) -> Option<u16> {
    let plain = plain(words);
    WORDS.iter().find(|(word, _)| plain.starts_with(word)).map(|(_, status)| *status)
}

/// Whether a type says no more than that there is an error.
pub(super) fn is_plain(kind: &str) -> bool {
    PLAIN.contains(&plain(kind).as_str())
}

/// Whether a sentence begins as errors do.
pub(super) fn is_error(words: &str) -> bool {
    let plain = plain(words);
    ["error", "internalerror", "upstreamerror"].iter().any(|begin| plain.starts_with(begin))
}

/// The status in a sentence: `[HTTP 502] …`, `Error code: 429 - …`, `503 Service Unavailable`.
pub(super) fn in_sentence(words: &str) -> Option<u16> {
    let end = words.floor_char_boundary(MAX_SENTENCE);
    let words = words.get(..end)?.to_ascii_lowercase();
    let at_start = words.trim_start_matches(|c: char| !c.is_alphanumeric());
    let after = BEFORE.iter().flat_map(|word| words.match_indices(word));
    let after = after.filter_map(|(at, word)| words.get(at + word.len()..));
    let marks = [' ', ':', '=', '"', '\'', '(', '[', ']', '-', '_'];
    let after = after.map(|rest| rest.trim_start_matches(marks));
    std::iter::once(at_start).chain(after).find_map(leading)
}

/// A status of three digits that `text` begins with.
fn leading(text: &str) -> Option<u16> {
    let (digits, rest) = text.split_at_checked(3)?;
    if rest.starts_with(|c: char| c.is_alphanumeric()) {
        return None;
    }
    // `parse` takes a sign.
    let digits = digits.bytes().all(|b| b.is_ascii_digit()).then_some(digits)?;
    digits.parse().ok().filter(|status| (400..600).contains(status))
}

/// Letters and digits of how `words` begins, in lower case.
fn plain(words: &str) -> String {
    let letters = words.chars().filter(char::is_ascii_alphanumeric);
    letters.take(40).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::{by_word, in_sentence, is_error, is_plain};

    #[test]
    fn a_status_is_read_where_sentences_have_one() {
        let rows = [
            ("[HTTP 502] <!DOCTYPE html> upstream", Some(502)),
            ("HTTP/1.1 503 Service Unavailable", Some(503)),
            ("503 Service Unavailable", Some(503)),
            ("\"429\": slow down", Some(429)),
            ("Error code: 429 - {'error': …}", Some(429)),
            ("Request failed with status code 500", Some(500)),
            ("upstream answered (status=504)", Some(504)),
            ("status_code: 401", Some(401)),
            ("[ERROR] 503 no room", Some(503)),
            ("error: 4096 tokens", None),
            ("HTTP 200 OK", None),
            ("wrote 500 words", None),
            ("code 5e2", None),
            ("code +50", None),
            ("", None),
            ("é", None),
        ];
        for (words, status) in rows {
            assert_eq!(in_sentence(words), status, "{words}");
        }
        let late = format!("{}HTTP 502", "é".repeat(400));
        assert_eq!(in_sentence(&late), None);
    }

    #[test]
    fn words_stand_for_a_status_however_they_are_written() {
        let rows = [
            ("overloaded_error", Some(529)),
            ("RESOURCE_EXHAUSTED", Some(429)),
            ("rateLimitExceeded", Some(429)),
            ("Rate limit reached, wait", Some(429)),
            ("Service Unavailable", Some(503)),
            ("something else", None),
        ];
        for (words, status) in rows {
            assert_eq!(by_word(words), status, "{words}");
        }
        assert!(is_plain("InternalServerError") && !is_plain("insufficient_quota"));
        assert!(is_error("[ERROR] it broke") && !is_error("the error of my ways"));
    }
}
