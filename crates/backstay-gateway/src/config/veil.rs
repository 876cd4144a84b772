//! Finds the secrets that stand in a config file, so that no problem shows them.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use super::nearest::nearest;

/// The keys that hold secrets, at any depth: a secret put into the wrong table is one all the same.
const KEYS: [&str; 6] = ["token", "api_keys", "api_key", "admin_key", "webhook", "headers"];
/// What the names of keys have in them that do not exist here, but were written for a secret.
const PARTS: [&str; 8] = [
    "access_token",
    "api_token",
    "auth_token",
    "secret",
    "password",
    "authorization",
    "bearer",
    "apikey",
];
/// Words of a line that may hold a secret, where the text is not TOML and nothing else is known.
const WORDS: [&str; 8] =
    ["token", "key", "secret", "password", "authorization", "webhook", "headers", "url"];

/// Words of names that have such a word in them and hold none.
const PLAIN: [&str; 2] = ["tokens", "first_token"];

/// Where literal secrets stand in a tree parsed from `text`.
pub(super) fn of_tree(root: &Spanned<DeValue<'_>>, text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let DeValue::Table(sections) = root.get_ref() else { return found };
    for (name, section) in sections {
        let entries = match section.get_ref() {
            DeValue::Table(entries) if name.get_ref() == "keys" => Some(entries),
            _ => None,
        };
        // A caller's key is a table: a text in its place is meant to be the token.
        for entry in entries.into_iter().flat_map(|entries| entries.values()) {
            if !matches!(entry.get_ref(), DeValue::Table(_)) {
                literals(entry, &mut found);
            }
        }
        below(name.get_ref(), section, text, &mut found);
    }
    found
}

/// The secrets in `value`, which stands at a key named `name`.
fn below(name: &str, value: &Spanned<DeValue<'_>>, text: &str, found: &mut Vec<Range<usize>>) {
    match value.get_ref() {
        _ if KEYS.contains(&name) => literals(value, found),
        DeValue::Table(table) => {
            table.iter().for_each(|(key, value)| below(key.get_ref(), value, text, found));
        }
        _ if is_secret(name) => literals(value, found),
        DeValue::Array(items) => items.iter().for_each(|item| below(name, item, text, found)),
        // A URL with a password or a query is refused, and must not be shown on the way.
        DeValue::String(_) if name.contains("url") => {
            let url = text.get(value.span()).unwrap_or_default();
            if url.contains(['@', '?']) {
                literals(value, found);
            }
        }
        _ => {}
    }
}

/// Whether a key of this name holds a secret, or was meant to.
fn is_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    PARTS.iter().any(|part| lower.contains(part)) || nearest(&lower, KEYS).is_some()
}

/// The spans of texts in `value`, its items and its entries, but for the names of variables.
fn literals(value: &Spanned<DeValue<'_>>, found: &mut Vec<Range<usize>>) {
    match value.get_ref() {
        DeValue::String(_) => found.push(inside_quotes(value.span())),
        DeValue::Array(items) => items.iter().for_each(|item| literals(item, found)),
        DeValue::Table(table) => {
            let others = table.iter().filter(|(key, _)| key.get_ref() != "env");
            others.for_each(|(_, value)| literals(value, found));
        }
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {}
    }
}

/// A string's span without its quotes.
fn inside_quotes(span: Range<usize>) -> Range<usize> {
    span.start + 1..span.end.saturating_sub(1)
}

/// Where secrets may stand in a text that is not TOML: what is in quotes, or should be, in lines
/// that name one, in a list or table opened there, and in tables whose header names one. The names
/// of variables stay readable.
pub(super) fn of_text(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (mut line_start, mut table, mut open) = (0, false, 0);
    for line in text.split_inclusive('\n') {
        let named = names_a_secret(&line.to_ascii_lowercase());
        if open == 0 && line.trim_start().starts_with('[') {
            table = named;
        } else if named || table || open > 0 {
            open = quoted(line, line_start, open, &mut found);
            found.extend(unquoted(line).map(|bare| line_start + bare.start..line_start + bare.end));
        }
        line_start += line.len();
    }
    found
}

/// Whether a line in lower case has a word in it that a secret stands beside.
fn names_a_secret(line: &str) -> bool {
    let mut words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let may_be = |word: &str| WORDS.iter().any(|part| word.contains(part));
    let is_plain = |word: &str| PLAIN.iter().any(|plain| word.contains(plain));
    words.any(|word| may_be(word) && !is_plain(word))
}

/// Finds the insides of the quotes of one line, but for those after `env =`. Returns how many
/// brackets are open behind it, of those outside quotes, where `open` were before it.
fn quoted(line: &str, line_start: usize, open: u32, found: &mut Vec<Range<usize>>) -> u32 {
    let mut brackets = open;
    let mut inside: Option<(usize, char)> = None;
    for (at, c) in line.char_indices() {
        match inside {
            None if c == '"' || c == '\'' => inside = Some((at + 1, c)),
            None if c == '[' || c == '{' => brackets += 1,
            None if c == ']' || c == '}' => brackets = brackets.saturating_sub(1),
            Some((from, quote)) if c == quote || c == '\n' => {
                let before = line.get(..from - 1).unwrap_or_default();
                let before = before.trim_end().trim_end_matches('=').trim_end();
                if !before.ends_with("env") {
                    found.push(line_start + from..line_start + at);
                }
                inside = None;
            }
            _ => {}
        }
    }
    if let Some((from, _)) = inside {
        found.push(line_start + from..line_start + line.len());
    }
    brackets
}

/// A value without quotes, such as a secret whose author forgot them.
fn unquoted(line: &str) -> Option<Range<usize>> {
    let (_, value) = line.split_once('=')?;
    let value = value.trim_start();
    let bare = !value.starts_with(['"', '\'', '[', '{']);
    bare.then(|| line.len() - value.len()..line.trim_end().len())
}

#[cfg(test)]
mod tests {
    use toml::de::DeTable;

    use super::*;

    fn shown<'t>(text: &'t str, found: &[Range<usize>]) -> Vec<&'t str> {
        found.iter().map(|range| text.get(range.clone()).unwrap()).collect()
    }

    fn veiled(text: &str) -> Vec<&str> {
        let (root, _) = DeTable::parse_recoverable(text);
        let root = Spanned::new(root.span(), DeValue::Table(root.into_inner()));
        shown(text, &of_tree(&root, text))
    }

    #[test]
    fn a_secret_is_found_wherever_and_however_it_is_written() {
        for (text, secret) in [
            ("[server]\nadmin_key = 's1'", "s1"),
            ("[alerts]\nwebhook = 'https://h/s2'", "https://h/s2"),
            ("[alerts]\nwebhook = { url = 's3' }", "s3"),
            ("[alerts.headers]\nx = 's4'", "s4"),
            ("admin_key = 's5'", "s5"),
            ("[keys]\napp = 's6'", "s6"),
            ("[keys.app]\ntokn = 's7'", "s7"),
            ("[providers.a]\napi_key = 's8'", "s8"),
            ("[providers.a]\nAPIKey = ['s9']", "s9"),
            ("[providers.a]\nbase_url = 'http://u:p@h'", "http://u:p@h"),
            ("[alerts]\nurl = 'http://h/?s'", "http://h/?s"),
            ("[[x]]\nsecret = 't1'", "t1"),
        ] {
            assert_eq!(veiled(text), [secret], "{text}");
        }
    }

    #[test]
    fn what_is_no_secret_is_shown() {
        for text in [
            "[keys.app]\ntoken = { env = 'NAME' }\ntenant = 't'",
            "[models.token-model]\nprovider = 'p'",
            "[routes.r.mend]\ndup_keys = 'last'",
            "[providers.a]\nbase_url = 'http://h/v1'",
            "[models.m]\ncontext_tokens = 'many'",
            "[routes.r.timeouts]\nfrist_token = '8s'",
            "[server]\nheader_timeout = '8s'",
        ] {
            assert!(veiled(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn in_a_broken_text_only_what_may_be_a_secret_is_veiled() {
        let text = "a = \"x\"\ntoken = \"abc\napi_keys = [{ env = \"NAME\" }, 'k']\nkey = \"zz";
        assert_eq!(shown(text, &of_text(text)), ["abc", "k", "zz"]);
        let text =
            "api_keys = [\n  'k1'\n  'k2',\n]\na = 'x'\n[alerts.headers]\nx = 'h'\n[b]\ny = 'z'";
        assert_eq!(shown(text, &of_text(text)), ["k1", "k2", "h"]);
        let text =
            "admin_key = s3cret # old\nmax_output_tokens = 5O0\nfirst_token = 8s\nlisten = here\n";
        assert_eq!(shown(text, &of_text(text)), ["s3cret # old"]);
    }
}
