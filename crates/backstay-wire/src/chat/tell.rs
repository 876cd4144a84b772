//! Tells a whole reply as the deltas of a stream.

use super::{Choice, Delta, Part, Reply};

impl Reply {
    /// The deltas that a stream of the reply would have: start, then choice after choice its parts
    /// in order and its finish, then usage and end. Parts only the provider's own dialect can say
    /// become [`Delta::Unknown`].
    pub fn deltas(&self) -> Vec<Delta> {
        let mut out = vec![Delta::Start { id: self.id.clone(), model: self.model.clone() }];
        if self.choices.is_empty() {
            return out;
        }
        for (place, choice) in (0u32..).zip(&self.choices) {
            let said = tell_choice(choice).into_iter();
            match place {
                0 => out.extend(said),
                choice => out.extend(said.map(|delta| Delta::of_choice(choice, delta))),
            }
        }
        out.push(Delta::Usage(self.usage));
        out.push(Delta::End);
        out
    }
}

fn tell_choice(choice: &Choice) -> Vec<Delta> {
    let (mut tools, mut out) = (0, Vec::new());
    for part in &choice.parts {
        tell(part, &mut tools, &mut out);
    }
    out.push(Delta::Finish { finish: choice.finish, word: choice.finish_word.clone() });
    out
}

fn tell(part: &Part, tools: &mut u32, out: &mut Vec<Delta>) {
    match part {
        Part::Text(text) if !text.is_empty() => out.push(Delta::Text(text.clone())),
        Part::Refusal(words) if !words.is_empty() => out.push(Delta::Refusal(words.clone())),
        Part::Thinking { text, signature } => {
            if !text.is_empty() {
                out.push(Delta::Reasoning(text.clone()));
            }
            out.extend(signature.clone().map(Delta::Signature));
        }
        Part::ToolCall { id, name, arguments } => {
            let index = *tools;
            *tools += 1;
            out.push(Delta::ToolStart { index, id: id.clone(), name: name.clone() });
            if !arguments.is_empty() {
                out.push(Delta::ToolArguments { index, fragment: arguments.clone() });
            }
        }
        Part::Text(_) | Part::Refusal(_) => {}
        Part::Image { .. } => out.push(Delta::Unknown("an image in a reply".into())),
        Part::ToolResult { .. } => out.push(Delta::Unknown("a tool result in a reply".into())),
        Part::Other(_) => out.push(Delta::Unknown("a block of another dialect".into())),
    }
}
