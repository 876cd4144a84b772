//! Whether anything in the reply is, or could be, held against the input.

use super::walk::{Found, Schemas};
use super::{Finding, Lint};

/// Words in the name of a field that can be compared with the input.
const WORDS: [&str; 17] = [
    "evidence",
    "quote",
    "quotes",
    "quoted",
    "excerpt",
    "excerpts",
    "citation",
    "citations",
    "cite",
    "snippet",
    "passage",
    "verbatim",
    "span",
    "id",
    "ids",
    "identifier",
    "reference",
];

/// The finding that nothing is compared, if so.
pub(super) fn unchecked(schemas: &Schemas<'_>, rules: Option<&[&str]>) -> Option<Finding> {
    if rules.is_some_and(|rules| rules.iter().any(|rule| names_input(rule))) {
        return None;
    }
    let field = schemas.places().find(|found| is_comparable(found));
    let (pointer, message) = match (field, rules) {
        (Some(field), Some(_)) => {
            (field.pointer.clone(), format!("no rule compares {} with the input", field.name()))
        }
        (Some(_), None) => return None,
        (None, _) => (String::new(), "no field of the reply can be compared with the input".into()),
    };
    Some(Finding { lint: Lint::Unchecked, pointer, message })
}

/// Whether a text (or a list of them) has a name that says where it comes from.
fn is_comparable(found: &Found<'_>) -> bool {
    let Some(key) = found.key else { return false };
    // `ticketId` and `ticket_id` are both two words.
    let mut words = String::new();
    for letter in key.chars() {
        if letter.is_uppercase() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    let mut words = words.split(|c: char| !c.is_alphanumeric());
    words.any(|word| WORDS.contains(&word))
}

/// Whether a CEL expression uses the variable `input`.
fn names_input(rule: &str) -> bool {
    let mut rest = rule.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = rest.next() {
        if letter == '"' || letter == '\'' {
            while let Some(inside) = rest.next() {
                match inside {
                    '\\' => drop(rest.next()),
                    end if end == letter => break,
                    _ => {}
                }
            }
        } else if letter.is_alphabetic() || letter == '_' {
            let mut word = String::from(letter);
            while let Some(more) = rest.next_if(|c| c.is_alphanumeric() || *c == '_') {
                word.push(more);
            }
            if word == "input" && before != '.' {
                return true;
            }
        }
        if !letter.is_whitespace() {
            before = letter;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::names_input;

    #[test]
    fn the_input_is_used_where_its_name_stands_alone() {
        for (rule, uses) in [
            ("input.contains(reply.evidence)", true),
            ("reply.quotes.all(q, input.contains(q))", true),
            ("size(reply.input) > 1", false),
            ("reply.x == 'input' || reply.y == \"\\\"input\"", false),
            ("inputs == 1 || my_input == 2", false),
            ("reply.a == 'x' && input != ''", true),
        ] {
            assert_eq!(names_input(rule), uses, "{rule}");
        }
    }
}
