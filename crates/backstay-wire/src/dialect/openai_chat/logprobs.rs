//! Reads `logprobs` of a choice, in the form of Chat Completions and in the older one of Completions.
//!
//! They are advice: what is not of a known form reads as absent.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chat::{Logprobs, Odds};

/// For each token the most likely ones, by their text.
type Likeliest<'a> = Vec<Option<BTreeMap<Cow<'a, str>, f32>>>;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Told<'a> {
    content: Option<Vec<Token>>,
    /// As `DeepSeek` says it.
    reasoning_content: Option<Vec<Token>>,
    /// Of Completions, with the following.
    token_logprobs: Option<Vec<Option<f32>>>,
    #[serde(borrow)]
    top_logprobs: Option<Likeliest<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Token {
    logprob: Option<f32>,
    top_logprobs: Option<Vec<Top>>,
}

#[derive(Deserialize)]
struct Top {
    logprob: f32,
}

/// What `raw` says. `None`: nothing.
pub(super) fn read(raw: &RawValue) -> Option<Logprobs> {
    let told: Told<'_> = serde_json::from_str(raw.get()).ok()?;
    let mut text = Odds::default();
    tokens(told.content, &mut text);
    older(told.token_logprobs, told.top_logprobs, &mut text);
    let mut reasoning = Odds::default();
    tokens(told.reasoning_content, &mut reasoning);
    Some(Logprobs { text, reasoning }).filter(|told| !told.is_empty())
}

/// The most likely choices of each token; where there are none, what was taken.
fn tokens(told: Option<Vec<Token>>, odds: &mut Odds) {
    for token in told.unwrap_or_default() {
        let top = token.top_logprobs.unwrap_or_default();
        let taken = token.logprob.filter(|_| top.is_empty());
        odds.push(top.into_iter().map(|top| top.logprob).chain(taken));
    }
}

fn older(taken: Option<Vec<Option<f32>>>, top: Option<Likeliest<'_>>, odds: &mut Odds) {
    let mut top = top.unwrap_or_default().into_iter();
    for taken in taken.unwrap_or_default() {
        let top = top.next().flatten().unwrap_or_default();
        let taken = taken.filter(|_| top.is_empty());
        odds.push(top.into_values().chain(taken));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The choices for each token of the text, and for each of the reasoning.
    fn told(value: &Value) -> Option<[Vec<Vec<f32>>; 2]> {
        let raw = RawValue::from_string(value.to_string()).unwrap();
        let all = |odds: &Odds| odds.tokens().map(<[f32]>::to_vec).collect();
        read(&raw).map(|told| [all(&told.text), all(&told.reasoning)])
    }

    #[test]
    fn the_likeliest_choices_of_each_token_are_read_or_the_one_that_was_taken() {
        let top =
            json!([{"token": "a", "logprob": -0.5, "bytes": [97]}, {"token": "b", "logprob": -2}]);
        let content = json!([
            {"token": "a", "logprob": -0.5, "bytes": null, "top_logprobs": top},
            {"token": "c", "logprob": -9999.0, "top_logprobs": []},
            {"token": "d"},
        ]);
        assert_eq!(
            told(&json!({"content": content, "refusal": null})),
            Some([vec![vec![-0.5, -2.0], vec![-9999.0]], vec![]])
        );
        assert_eq!(
            told(&json!({"content": null, "reasoning_content": [{"logprob": -1}]})),
            Some([vec![], vec![vec![-1.0]]])
        );
    }

    #[test]
    fn the_older_form_is_read_too() {
        let older = json!({"tokens": ["a", "\"b", "c"], "text_offset": [0, 1, 2],
            "token_logprobs": [null, -0.25, -1.0], "top_logprobs": [null, {"\"b": -0.25, "x": -3}, {}]});
        assert_eq!(told(&older), Some([vec![vec![-0.25, -3.0], vec![-1.0]], vec![]]));
    }

    #[test]
    fn what_is_of_no_known_form_says_nothing() {
        for odd in [
            json!({}),
            json!([]),
            json!("x"),
            json!({"content": []}),
            json!({"content": [{"logprob": "-1"}]}),
            json!({"content": 3, "token_logprobs": [-1]}),
            json!({"content": [null]}),
        ] {
            assert_eq!(told(&odd), None, "{odd}");
        }
    }
}
