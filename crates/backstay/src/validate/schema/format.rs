//! Which `format`s of a schema are checked, and how a text that is none is told of.

/// What a `format` in a schema does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Formats {
    /// Those that providers enforce are checked: date-time, date, time, duration, email, hostname,
    /// ipv4, ipv6, uri and uuid; a duration since draft 2019-09. Others say something and assert
    /// nothing.
    #[default]
    Checked,
    /// All say something and assert nothing, as draft 2020-12 has it where nobody asks for more.
    Noted,
}

/// Formats that the compiler knows and no provider enforces. `regex` among them: to check it, each
/// reply's text would be compiled.
pub(super) const NOTED: [&str; 9] = [
    "idn-email",
    "idn-hostname",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "uri-reference",
    "uri-template",
];

/// Whether a text is a UUID: 32 hex digits of either case, in groups of 8, 4, 4, 4 and 12. Our own,
/// since the compiler knows the format in newer drafts only, and generators write older ones.
pub(super) fn is_uuid(text: &str) -> bool {
    let is_right = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_right)
}

/// What a text of the wrong format is not: the rest of a sentence that begins with its name.
pub(super) fn words(format: &str) -> &'static str {
    match format {
        "date" => "is not a date such as 2026-11-30",
        "date-time" => "is not a date-time such as 2026-11-30T12:00:00Z",
        "time" => "is not a time such as 12:00:00Z",
        "duration" => "is not a duration such as P3DT12H",
        "email" => "is not an email address",
        "hostname" => "is not a hostname",
        "ipv4" => "is not an IPv4 address",
        "ipv6" => "is not an IPv6 address",
        "uri" => "is not a URI",
        "uuid" => "is not a UUID",
        _ => "is not in the format of the schema",
    }
}
