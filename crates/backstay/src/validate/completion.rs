//! Layer 0: whether the model finished, and said anything.

use backstay_decide::fault::Fault;
use backstay_decide::recover::rescue::Way;
use backstay_wire::chat::{Choice, Finish, Part};

use super::{Layer, Unfit};

/// What a finished reply consists of.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// An answer in text. Blank only where it has a picture or a block of a kind not known here, or
    /// goes on with a text that was whole.
    Text(String),
    /// Tool calls, with the text beside them; often empty.
    Calls(String),
}

/// Refuses a reply that did not end normally or says nothing, in the order refusal, filter,
/// length, the other ends, empty. A refusal counts however the reply ended: some providers say
/// `stop` beside it. What goes on with a text that was told may add nothing.
pub(super) fn completed(choice: &Choice, way: Way) -> Result<Said, Unfit> {
    let refusal = choice.refusal();
    if let Some(words) = refusal {
        let words = words.trim();
        let errors = if words.is_empty() { Vec::new() } else { vec![words.to_owned()] };
        return Err(unfit(Fault::Refused, errors));
    }
    match choice.finish {
        Finish::Complete | Finish::ToolUse => said(choice, way),
        Finish::Refused => Err(unfit(Fault::Refused, Vec::new())),
        Finish::ContentFiltered => Err(unfit(Fault::ContentFiltered, Vec::new())),
        Finish::Truncated => Err(unfit(Fault::Truncated, Vec::new())),
        Finish::ContextExceeded => Err(unfit(Fault::ContextExceeded, Vec::new())),
        Finish::Paused => Err(unfit(Fault::Paused, Vec::new())),
        Finish::Unknown => Err(unfit(Fault::UnknownFinish, vec![unknown(choice)])),
    }
}

fn said(choice: &Choice, way: Way) -> Result<Said, Unfit> {
    let text = choice.text();
    let blank = text.trim().is_empty();
    if choice.calls_tools() && (blank || choice.finish == Finish::ToolUse) {
        return Ok(Said::Calls(text));
    }
    let shows = choice.parts.iter().any(|part| matches!(part, Part::Image { .. } | Part::Other(_)));
    if blank && !shows && way == Way::Restart {
        return Err(unfit(Fault::Empty, vec![nothing(choice)]));
    }
    Ok(Said::Text(text))
}

fn nothing(choice: &Choice) -> String {
    let thought = choice.parts.iter().any(|part| matches!(part, Part::Thinking { .. }));
    let what = if thought { "only reasoning, no answer" } else { "no text and no tool call" };
    what.to_owned()
}

fn unknown(choice: &Choice) -> String {
    match &choice.finish_word {
        Some(word) => format!("unknown finish '{word}'"),
        None => "no finish given".to_owned(),
    }
}

fn unfit(fault: Fault, errors: Vec<String>) -> Unfit {
    Unfit::new(fault, Layer::Completion, errors)
}
