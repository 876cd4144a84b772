//! Damages a good reply in exactly one way.

use std::mem::discriminant;

use serde_json::{Map, Value, json};

use crate::ask::{Ask, Dialect};
use crate::behaviour::Damage;
use crate::dice::Dice;
use crate::instance;
use crate::prose::{self, Words};
use crate::said::{self, Answered, Call, Finish, Place, Said};

/// What the damage depends on beside the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occasion {
    /// Which call with this model and first user message it is; the first is 1.
    pub(crate) turn: u32,
    /// Wrong answers before the right one (`right-after`).
    pub(crate) wrong: u32,
    /// Tokens below which the reply is cut (`truncated-by-cap`).
    pub(crate) need: u64,
    /// Bytes of sentences behind the answer (`then-prose`).
    pub(crate) behind: usize,
}

/// The damaged reply.
pub(crate) fn damaged(
    damage: Damage,
    ask: &Ask,
    answered: Option<Answered<'_>>,
    mut dice: Dice,
    occasion: Occasion,
) -> Said {
    let answered = answered.unwrap_or_else(|| Answered {
        value: said::triage(ask, &mut dice),
        text: None,
        place: Place::Text,
        schema: None,
    });
    let text = match damage {
        Damage::RightOnSecond if occasion.turn >= 2 => whole(&answered),
        Damage::RightAfter if occasion.turn > occasion.wrong => whole(&answered),
        Damage::RightOnSecond | Damage::RightAfter | Damage::EnumMiss => {
            edited(&answered, |map| miss_enum(map, answered.schema))
        }
        Damage::Fenced => format!("```json\n{:#}\n```", answered.value),
        Damage::ProseAround => format!(
            "Sure, here is the result for this message:\n\n{}\n\nTell me if anything is unclear.",
            whole(&answered)
        ),
        Damage::ThenProse => {
            let prose = prose::sentences(&mut dice, occasion.behind, Words::Plain);
            format!("{}\n\n{prose}", whole(&answered))
        }
        Damage::TwoObjects => two_objects(&answered, ask),
        Damage::WrongSchema => edited(&answered, |map| drop_required(map, answered.schema)),
        Damage::WrongType => edited(&answered, wrong_type),
        Damage::ExtraKey => edited(&answered, |map| {
            let key =
                if map.contains_key("confidence") { "confidence_score" } else { "confidence" };
            map.insert(key.to_owned(), json!(0.93));
        }),
        Damage::InventedQuote => edited(&answered, |map| invent_quote(map, &ask.last_user)),
        Damage::UrgentNoReview => edited(&answered, |map| {
            for (key, value) in [("priority", json!(1)), ("needs_human", json!(false))] {
                if let Some(place) = map.get_mut(key) {
                    *place = value;
                }
            }
        }),
        Damage::WrongCategory => edited(&answered, |map| other_category(map, answered.schema)),
        Damage::ThinkTags => format!(
            "<think>\nThe message says {:?}. So the fields follow.\n</think>\n\n{}",
            prose::head(&ask.last_user, 60),
            whole(&answered)
        ),
        Damage::Unclosed => {
            let mut text = whole(&answered);
            if let Some(at) = text.rfind('}') {
                text.truncate(at);
            }
            text
        }
        Damage::Refusal => return refusal(ask.dialect()),
        Damage::QuietRefusal => {
            return Said { text: QUIET.to_owned(), ..Said::default() };
        }
        Damage::EmptyContent => return Said::default(),
        // The bodies of these are no replies; `compose` sends them.
        Damage::EmptyBody | Damage::Page | Damage::JsonArray | Damage::ErrorIn200 => {
            whole(&answered)
        }
        Damage::ContentFilter
        | Damage::Truncated
        | Damage::TruncatedByCap
        | Damage::UnknownFinish
        | Damage::NullFinish => whole(&answered),
    };
    let mut said = Said::structured(answered.place, text);
    finish(&mut said, damage, ask, occasion);
    said
}

const QUIET: &str = "I'm sorry, but I can't help with that request. If you have a different \
    question, I'm happy to help.";

/// Sets the finish of the damages that live there, and cuts where it says so.
fn finish(said: &mut Said, damage: Damage, ask: &Ask, occasion: Occasion) {
    let short = ask.max_tokens.is_some_and(|cap| cap < occasion.need);
    match damage {
        Damage::Truncated => cut_at_half(said, Finish::Length),
        Damage::TruncatedByCap if short => cut_at_half(said, Finish::Length),
        Damage::ContentFilter => cut_at_half(said, Finish::Filter),
        Damage::UnknownFinish => said.finish = Finish::Unknown,
        Damage::NullFinish => said.finish = Finish::Null,
        _ => {}
    }
}

/// Keeps the first half of what was written.
pub(crate) fn cut_at_half(said: &mut Said, finish: Finish) {
    said.text.truncate(prose::head(&said.text, said.text.len() / 2).len());
    for Call { arguments, .. } in &mut said.calls {
        arguments.truncate(prose::head(arguments, arguments.len() / 2).len());
    }
    said.finish = finish;
}

fn refusal(dialect: Dialect) -> Said {
    let finish = match dialect {
        Dialect::OpenAi => Finish::Stop,
        Dialect::Anthropic => Finish::Refusal,
    };
    Said {
        refusal: Some("I'm sorry, I cannot assist with that request.".to_owned()),
        finish,
        ..Said::default()
    }
}

/// The answer as its giver wrote it, or compact.
pub(crate) fn whole(answered: &Answered<'_>) -> String {
    answered.text.clone().unwrap_or_else(|| answered.value.to_string())
}

/// The answer, and another one below it.
fn two_objects(answered: &Answered<'_>, ask: &Ask) -> String {
    let first = whole(answered);
    let mut second = edited(answered, |map| other_category(map, answered.schema));
    if second == first {
        second = edited(answered, |map| invent_quote(map, &ask.last_user));
    }
    format!("{first}\n{second}")
}

/// The answer with one edit of its object; an answer that is no object stays as it is.
fn edited(answered: &Answered<'_>, edit: impl FnOnce(&mut Map<String, Value>)) -> String {
    let mut value = answered.value.clone();
    if let Value::Object(map) = &mut value {
        edit(map);
    }
    value.to_string()
}

/// Removes the last required key, or the last key.
fn drop_required(map: &mut Map<String, Value>, schema: Option<&Value>) {
    let required = schema.and_then(|s| s.get("required")).and_then(Value::as_array);
    let key = required
        .and_then(|list| list.iter().rev().filter_map(Value::as_str).find(|k| map.contains_key(*k)))
        .map(str::to_owned)
        .or_else(|| map.keys().next_back().cloned());
    if let Some(key) = key {
        map.shift_remove(&key);
    }
}

/// Writes the first integer as a string; without one, the first number or boolean; without those,
/// makes the first string a number.
fn wrong_type(map: &mut Map<String, Value>) {
    let first = |wanted: fn(&Value) -> bool| {
        map.iter().find(|(_, value)| wanted(value)).map(|(key, _)| key.clone())
    };
    let key = first(|v| v.is_i64() || v.is_u64())
        .or_else(|| first(Value::is_number))
        .or_else(|| first(Value::is_boolean));
    if let Some(value) = key.and_then(|key| map.get_mut(&key)) {
        *value = Value::String(value.to_string());
        return;
    }
    if let Some(value) = map.values_mut().next() {
        *value = json!(7);
    }
}

/// Puts a value outside its enum: at the first property with one, else at `category`, else at the
/// first string.
fn miss_enum(map: &mut Map<String, Value>, schema: Option<&Value>) {
    let key = enum_key(map, schema).or_else(|| {
        let known = map.contains_key("category").then(|| "category".to_owned());
        known.or_else(|| first_string(map))
    });
    if let Some(value) = key.and_then(|key| map.get_mut(&key)) {
        *value = json!(if *value == "payments" { "payments_and_more" } else { "payments" });
    }
}

fn first_string(map: &Map<String, Value>) -> Option<String> {
    map.iter().find(|(_, value)| value.is_string()).map(|(key, _)| key.clone())
}

/// The members of the enum at `key`, by the schema.
fn members<'a>(schema: Option<&'a Value>, key: &str) -> Option<&'a Vec<Value>> {
    let schema = schema?;
    let property = schema.get("properties")?.get(key)?;
    let property = match property.get("$ref").and_then(Value::as_str) {
        Some(pointer) => schema.pointer(pointer.strip_prefix('#')?)?,
        None => property,
    };
    property.get("enum")?.as_array()
}

/// The first key of the answer that has an enum; `category` before others.
fn enum_key(map: &Map<String, Value>, schema: Option<&Value>) -> Option<String> {
    if map.contains_key("category") && members(schema, "category").is_some() {
        return Some("category".to_owned());
    }
    map.keys().find(|key| members(schema, key).is_some()).cloned()
}

/// Replaces the quote by words the source does not have.
fn invent_quote(map: &mut Map<String, Value>, source: &str) {
    let key = map
        .iter()
        .find(|(key, value)| instance::hints_a_quote(key) && value.is_string())
        .map(|(key, _)| key.clone())
        .or_else(|| first_string(map));
    let Some(value) = key.and_then(|key| map.get_mut(&key)) else { return };
    let mut quote = "charged three times".to_owned();
    while source.contains(&quote) {
        quote.push_str(" over");
    }
    *value = Value::String(quote);
}

/// Another valid category: another member of the enum, or of the usual four.
fn other_category(map: &mut Map<String, Value>, schema: Option<&Value>) {
    let usual = ["billing", "shipping", "technical", "other"].map(Value::from).to_vec();
    let key = enum_key(map, schema).unwrap_or_else(|| "category".to_owned());
    let members = members(schema, &key).unwrap_or(&usual);
    let Some(value) = map.get_mut(&key) else { return };
    let at = members.iter().position(|m| m == value).map_or(0, |at| at + 1);
    let turned = members.iter().cycle().skip(at).take(members.len());
    if let Some(other) =
        turned.into_iter().find(|m| *m != value && discriminant(*m) == discriminant(value))
    {
        *value = other.clone();
    }
}
