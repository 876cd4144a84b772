//! What the model says, before it is put on the wire in a dialect.

use serde_json::{Map, Value, json};

use crate::Settings;
use crate::ask::{Ask, Tool};
use crate::dice::Dice;
use crate::instance::{self, Maker};
use crate::order::Params;
use crate::prose::{self, Words};

/// One reply.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    /// A refusal in the dialect's own form; the text is then not sent.
    pub(crate) refusal: Option<String>,
    pub(crate) finish: Finish,
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
}

/// One tool call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// JSON text, or what passes for it.
    pub(crate) arguments: String,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Finish {
    #[default]
    Stop,
    Length,
    ToolUse,
    /// Anthropic has no such value and says `refusal`.
    Filter,
    Refusal,
    /// A value nobody knows.
    Unknown,
    Null,
}

/// Where a structured answer goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    Text,
    Call(&'a Tool),
}

/// A structured answer before it is written out.
#[derive(Clone, Debug)]
pub(crate) struct Answered<'a> {
    pub(crate) value: Value,
    /// Written out by the one who gave the answer; none: compact JSON.
    pub(crate) text: Option<String>,
    pub(crate) place: Place<'a>,
    pub(crate) schema: Option<&'a Value>,
}

/// The structured answer a healthy model gives; none when it would answer in prose.
pub(crate) fn answer<'a>(
    ask: &'a Ask,
    settings: &Settings,
    dice: &Dice,
    words: Words,
) -> Option<Answered<'a>> {
    let place = match ask.forced.and_then(|at| ask.tools.get(at)) {
        Some(tool) if ask.schema.is_none() => Place::Call(tool),
        _ => Place::Text,
    };
    let schema = match place {
        Place::Call(tool) => Some(&tool.schema),
        Place::Text => ask.schema.as_ref(),
    };
    let known = settings.answers.iter().find(|known| ask.last_user.contains(&known.contains));
    let (value, text) = match (known, schema) {
        (Some(known), _) => (known.reply.clone(), known.text.clone()),
        (None, Some(schema)) => {
            (Maker::new(schema, dice.clone(), &ask.last_user, words).make(), None)
        }
        (None, None) => return None,
    };
    Some(Answered { value, text, place, schema })
}

/// A triage answer made of the last user message, where no schema says what else to make.
pub(crate) fn triage(ask: &Ask, dice: &mut Dice) -> Value {
    let categories = ["billing", "shipping", "technical", "other"];
    let category = dice.pick(&categories).copied().unwrap_or("other");
    let priority = 1 + dice.below(4);
    let summary = prose::line(dice, 5, Words::Plain);
    let evidence = instance::quote(dice, &ask.last_user, 0, 120);
    let needs_human = priority == 1 || dice.below(2) == 1;
    json!({"category": category, "priority": priority, "summary": summary,
        "evidence": evidence, "needs_human": needs_human})
}

impl Said {
    /// Puts `answered` where it belongs, written as `text`.
    pub(crate) fn structured(place: Place<'_>, text: String) -> Self {
        match place {
            Place::Text => Self { text, ..Self::default() },
            Place::Call(tool) => Self {
                calls: vec![Call { name: tool.name.clone(), arguments: text }],
                finish: Finish::ToolUse,
                ..Self::default()
            },
        }
    }

    /// Prose of the size asked for, or of the size that makes the usual 645-byte reply.
    pub(crate) fn prose(params: &Params, dice: &mut Dice, words: Words) -> Self {
        let size = params.size.unwrap_or_else(|| params.chunks.map_or(USUAL, |n| n * CHUNK));
        Self { text: prose::sentences(dice, size.max(1), words), ..Self::default() }
    }

    /// Everything the model wrote, in bytes.
    pub(crate) fn written(&self) -> usize {
        let calls: usize = self.calls.iter().map(|c| c.name.len() + c.arguments.len()).sum();
        self.text.len() + calls + self.refusal.as_ref().map_or(0, String::len)
    }

    /// Cuts what is longer than the caller's cap, as an honest model does.
    pub(crate) fn respect(&mut self, cap: Option<u64>) {
        let Some(room) = cap.and_then(|c| usize::try_from(c.saturating_mul(4)).ok()) else {
            return;
        };
        if self.written() <= room {
            return;
        }
        self.finish = Finish::Length;
        self.text.truncate(prose::head(&self.text, room).len());
        let mut left = room - self.text.len();
        for call in &mut self.calls {
            call.arguments.truncate(prose::head(&call.arguments, left).len());
            left -= call.arguments.len();
        }
    }

    /// Fills in the token counts: a quarter of the bytes, unless the order names them.
    pub(crate) fn count(&mut self, ask: &Ask, params: &Params) {
        let written = u64::try_from(self.written().div_ceil(4)).unwrap_or(0);
        let capped = ask.max_tokens.map_or(written, |cap| written.min(cap));
        self.completion_tokens = params.completion_tokens.unwrap_or(capped);
        self.prompt_tokens = params.prompt_tokens.unwrap_or(ask.prompt_tokens);
    }
}

/// Text that makes the whole OpenAI body about 645 bytes.
const USUAL: usize = 96;
/// Text for each chunk asked for: a short word.
const CHUNK: usize = 6;

/// The tool to call at place `at`: the caller's, in turn, or one of our own where there is none.
pub(crate) fn tool_call(ask: &Ask, at: usize, dice: &Dice) -> Call {
    let known = at.checked_rem(ask.tools.len()).and_then(|turn| ask.tools.get(turn));
    let tool = known.cloned().unwrap_or_else(|| Tool {
        name: "lookup_order".to_owned(),
        schema: json!({"type": "object", "required": ["order_id", "include_history"], "properties":
            {"order_id": {"type": "string"}, "include_history": {"type": "boolean"}}}),
    });
    let mut dice = dice.clone();
    for _ in 0..at {
        dice.throw();
    }
    let made = Maker::new(&tool.schema, dice, &ask.last_user, Words::Plain).make();
    let made = if made.is_object() { made } else { Value::Object(Map::new()) };
    Call { name: tool.name, arguments: made.to_string() }
}
