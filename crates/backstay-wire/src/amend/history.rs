//! The messages of a request without what only the provider that made them understands.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::scan::{self, Edit, MAX_DEPTH};

/// The longest id that every known provider takes: OpenAI's limit is 40 for some models, 64 for most.
const LONGEST_ID: usize = 40;

/// `messages`, a JSON list, without blocks of reasoning, and what was done. A message that held nothing
/// else goes with them. `None`: there are none.
pub(super) fn without_thinking(messages: &str) -> Option<(String, String)> {
    let list: Vec<&RawValue> = serde_json::from_str(messages).ok()?;
    let (mut kept, mut taken) = (Vec::new(), 0);
    for message in list {
        match stripped(message.get()) {
            None => kept.push(message.get().to_owned()),
            Some((text, count)) => {
                taken += count;
                kept.extend(text);
            }
        }
    }
    let note = format!("{taken} blocks of signed reasoning left out: another provider's");
    (taken > 0).then(|| (format!("[{}]", kept.join(",")), note))
}

/// The message without its blocks of reasoning, and how many there were; without a text when nothing is
/// left. `None`: it has none.
fn stripped(message: &str) -> Option<(Option<String>, usize)> {
    #[derive(Deserialize)]
    struct Block<'a> {
        #[serde(rename = "type", borrow, default)]
        kind: Option<std::borrow::Cow<'a, str>>,
    }
    let head = scan::scan(message.as_bytes(), MAX_DEPTH).ok()?;
    let content = std::str::from_utf8(head.raw(message.as_bytes(), "content")?).ok()?;
    let blocks: Vec<&RawValue> = serde_json::from_str(content).ok()?;
    let is_kept = |block: &&&RawValue| {
        let kind = serde_json::from_str::<Block<'_>>(block.get()).ok().and_then(|block| block.kind);
        !matches!(kind.as_deref(), Some("thinking" | "redacted_thinking"))
    };
    let kept: Vec<&str> = blocks.iter().filter(is_kept).map(|block| block.get()).collect();
    let taken = blocks.len() - kept.len();
    if taken == 0 {
        return None;
    }
    let edit = Edit::Set("content", format!("[{}]", kept.join(",")));
    let text = String::from_utf8(head.edit(message.as_bytes(), &[edit])).ok();
    Some((text.filter(|_| !kept.is_empty()), taken))
}

/// `messages`, a JSON list, with every id of a tool call that is too long, or of odd letters, in another
/// form: the same id the same form throughout. `None`: there is none.
pub(super) fn with_short_ids(messages: &str) -> Option<(String, String)> {
    let list: Vec<&RawValue> = serde_json::from_str(messages).ok()?;
    let mut forms: HashMap<String, String> = HashMap::new();
    for id in list.iter().flat_map(|message| ids(message.get())).filter(|id| !is_plain(id)) {
        let form = short(&id);
        forms.insert(id, form);
    }
    if forms.is_empty() {
        return None;
    }
    let mut text = messages.to_owned();
    for (id, form) in &forms {
        // As a whole JSON text, which no longer one holds: its quotes would be escaped there.
        text = text.replace(&quoted(id), &quoted(form));
    }
    Some((text, format!("{} ids of tool calls put in a form that the target takes", forms.len())))
}

/// The ids that a message gives or answers to.
fn ids(message: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Message<'a> {
        tool_call_id: Option<String>,
        #[serde(default)]
        tool_calls: Option<Vec<Call>>,
        #[serde(borrow)]
        content: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Call {
        id: Option<String>,
    }
    #[derive(Deserialize)]
    struct Block {
        id: Option<String>,
        tool_use_id: Option<String>,
    }
    let Ok(message) = serde_json::from_str::<Message<'_>>(message) else { return Vec::new() };
    let calls = message.tool_calls.into_iter().flatten().filter_map(|call| call.id);
    let blocks: Vec<Block> = message
        .content
        .and_then(|content| serde_json::from_str(content.get()).ok())
        .unwrap_or_default();
    let blocks = blocks.into_iter().flat_map(|block| [block.id, block.tool_use_id]).flatten();
    message.tool_call_id.into_iter().chain(calls).chain(blocks).collect()
}

fn is_plain(id: &str) -> bool {
    id.len() <= LONGEST_ID
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// 32 hexadecimal digits that stand for `id`: two FNV-1a sums of 64 bits, from two starts. They keep the
/// few ids of one request apart, and protect nothing.
fn short(id: &str) -> String {
    let sum = |start: u64| {
        id.bytes().fold(start, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    };
    format!("call_{:016x}{:016x}", sum(0xcbf2_9ce4_8422_2325), sum(0x6c62_272e_07bb_0142))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
