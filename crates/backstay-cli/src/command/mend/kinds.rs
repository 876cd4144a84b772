//! Every kind of edit with an example. What the example becomes is worked out, not written down.

use jsonmend::{AtCut, Kind, Mender, Policy, Status};

use crate::print;

/// Each kind with a reply that needs it. Where the standard policy refuses it, the lenient one, or
/// one with a knob turned, shows what it does.
const EXAMPLES: &[(Kind, &str)] = &[
    (Kind::Bom, "\u{feff}{\"a\": 1}"),
    (Kind::ThinkBlock, "<think>so {}</think>{\"a\": 1}"),
    (Kind::Fence, "```json\n{\"a\": 1}\n```"),
    (Kind::ProseBefore, "Sure: {\"a\": 1}"),
    (Kind::ProseAfter, "{\"a\": 1} Anything else?"),
    (Kind::Wrapper, "reply = {\"a\": 1}"),
    (Kind::TrailingComma, "{\"a\": 1,}"),
    (Kind::LeadingComma, "{,\"a\": 1}"),
    (Kind::DoubleComma, "{\"a\": 1,, \"b\": 2}"),
    (Kind::ElidedItem, "[1,,2]"),
    (Kind::MissingComma, "{\"a\": 1 \"b\": 2}"),
    (Kind::Semicolon, "{\"a\": 1; \"b\": 2}"),
    (Kind::MissingColon, "{\"a\" 1}"),
    (Kind::WrongColon, "{\"a\" = 1}"),
    (Kind::SingleQuotes, "{'a': 1}"),
    (Kind::SmartQuotes, "{“a”: 1}"),
    (Kind::Backticks, "{\"a\": `b`}"),
    (Kind::UnquotedKey, "{a: 1}"),
    (Kind::UnquotedValue, "{\"a\": 2024-01-15}"),
    (Kind::MissingOpenQuote, "{\"a\": x y\", \"b\": 1}"),
    (Kind::MissingCloseQuote, "{\"a: 1, \"b\": 2}"),
    (Kind::DoubledQuotes, "{\"\"a\"\": 1}"),
    (Kind::EscapedDocument, "{\\\"a\\\": 1}"),
    (Kind::InnerQuote, "{\"a\": \"say \"hi\" now\"}"),
    (Kind::RawControl, "{\"a\": \"1\n2\"}"),
    (Kind::BadEscape, "{\"a\": \"C:\\dir\"}"),
    (Kind::NeedlessEscape, "{\"a\": \"it\\'s\"}"),
    (Kind::HexEscape, "{\"a\": \"\\x41\"}"),
    (Kind::LineContinuation, "{\"a\": \"1\\\n2\"}"),
    (Kind::LiteralCase, "{\"a\": TRUE}"),
    (Kind::PythonLiteral, "{\"a\": None}"),
    (Kind::Tuple, "{\"a\": (1, 2)}"),
    (Kind::MongoCall, "{\"a\": ObjectId(\"5f\")}"),
    (Kind::Concat, "{\"a\": \"b\" + \"c\"}"),
    (Kind::TripleQuote, "{\"a\": \"\"\"b\"\"\"}"),
    (Kind::NumberForm, "{\"a\": .5}"),
    (Kind::Comment, "{\"a\": 1 /* so */}"),
    (Kind::MissingCloser, "{\"a\": [1, 2}"),
    (Kind::WrongCloser, "{\"a\": [1, 2}}"),
    (Kind::ExtraCloser, "{\"a\": 1}}"),
    (Kind::MissingOpener, "\"a\": 1, \"b\": 2}"),
    (Kind::DoubledBraces, "{{\"a\": 1}}"),
    (Kind::Fullwidth, "{\"a\"：1}"),
    (Kind::OddSpace, "{\"a\":\u{a0}1}"),
    (Kind::DupSame, "{\"a\": 1, \"a\": 1}"),
    (Kind::DupKey, "{\"a\": 1, \"a\": 2}"),
    (Kind::SameRootTwice, "{\"a\": 1}\n{\"a\": 1}"),
    (Kind::Ndjson, "{\"a\": 1}\n{\"a\": 2}"),
    (Kind::OtherCandidate, "{\"a\": 1}\n{\"a\": 2}"),
    (Kind::TruncString, "{\"a\": \"b"),
    (Kind::TruncKey, "{\"a\": 1, \"b"),
    (Kind::TruncValue, "{\"a\": 1, \"b\":"),
    (Kind::TruncNumber, "{\"a\": 1, \"b\": 2"),
    (Kind::TruncLiteral, "{\"a\": 1, \"b\": tr"),
    (Kind::TruncEscape, "{\"a\": \"b\\u00"),
    (Kind::TruncContainer, "[{\"a\": true}"),
    (Kind::BareNumber, "{\"a\": 007}"),
    (Kind::Nan, "{\"a\": NaN}"),
];

/// Prints a line for each kind.
pub(super) fn list() {
    print::line("kind                 class      example, and what it becomes");
    for (kind, raw) in EXAMPLES {
        let (becomes, policy) = shown(*kind, raw);
        let by = if policy == "standard" { String::new() } else { format!("   ({policy})") };
        let class = kind.class().name();
        let line = format!("{:<20} {class:<10} {}  ->  {becomes}{by}", kind.name(), visible(raw));
        print::line(&line);
    }
    print::line("\nin brackets: the policy that accepts it, where it is not `standard`");
}

/// What the reply becomes under the first policy that makes this edit, and that policy's name.
fn shown(kind: Kind, raw: &str) -> (String, &'static str) {
    let standard = Policy::standard();
    let first = Policy { several: jsonmend::Several::First, ..standard };
    let drop = Policy { cut_string: AtCut::Drop, ..standard };
    let policies = [
        (standard, "standard"),
        (Policy::lenient(), "lenient"),
        (first, "a library's choice"),
        (drop, "a library's choice"),
    ];
    let found = policies.into_iter().find_map(|(policy, name)| {
        let outcome = Mender::new(policy).mend(raw, Status::Unknown);
        let document = outcome.document()?;
        let made = document.kinds().any(|made| made == kind);
        made.then(|| (visible(document.text(raw).trim()), name))
    });
    found.unwrap_or_else(|| ("refused".into(), "none"))
}

/// A text on one line, with what cannot be seen as an escape.
fn visible(text: &str) -> String {
    text.chars().fold(String::new(), |mut line, letter| {
        match letter {
            '\n' => line.push('⏎'),
            '\u{a0}' | '\u{feff}' => line.extend(letter.escape_unicode()),
            letter => line.push(letter),
        }
        line
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_an_example_that_needs_it() {
        let mut wrong = Vec::new();
        for kind in Kind::ALL {
            let examples = EXAMPLES.iter().filter(|(shown, _)| shown == kind);
            let raws: Vec<&str> = examples.map(|(_, raw)| *raw).collect();
            assert_eq!(raws.len(), 1, "{kind}");
            let (becomes, policy) = shown(*kind, raws[0]);
            if policy == "none" {
                wrong.push(format!("{kind}: {} becomes {becomes}", raws[0]));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
