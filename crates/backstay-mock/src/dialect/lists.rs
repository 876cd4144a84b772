//! The small endpoints: models, embeddings, token counts.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::ask::{Ask, Dialect};
use crate::behaviour::behaviours;
use crate::dice::Dice;

/// The list of models: every behaviour's name.
pub(crate) fn models(dialect: Dialect) -> Value {
    let list: Vec<Value> = behaviours().iter().map(|b| model(dialect, b.name)).collect();
    let name = |b: Option<&crate::Behaviour>| b.map(|b| b.name);
    match dialect {
        Dialect::OpenAi => json!({"object": "list", "data": list}),
        Dialect::Anthropic => json!({"data": list, "has_more": false,
            "first_id": name(behaviours().first()), "last_id": name(behaviours().last())}),
    }
}

/// One model.
pub(crate) fn model(dialect: Dialect, name: &str) -> Value {
    match dialect {
        Dialect::OpenAi => json!({"id": name, "object": "model", "created": 1_795_953_600,
            "owned_by": "backstay-mock"}),
        Dialect::Anthropic => json!({"type": "model", "id": name, "display_name": name,
            "created_at": "2026-11-29T00:00:00Z"}),
    }
}

/// The number of tokens of a request.
pub(crate) fn token_count(ask: &Ask) -> Bytes {
    Bytes::from(json!({"input_tokens": ask.prompt_tokens}).to_string())
}

/// One vector of unit length for each input, the same for the same input.
pub(crate) fn embeddings(ask: &Ask, seed: u64) -> Bytes {
    let Some(embed) = &ask.embed else { return Bytes::from_static(b"{}") };
    let rows: Vec<Value> = embed
        .inputs
        .iter()
        .enumerate()
        .map(|(index, input)| {
            let vector = vector(&mut Dice::of(seed, &["embed", input]), embed.dimensions);
            let embedding = if embed.base64 {
                let bytes: Vec<u8> = vector.iter().flat_map(|v| v.to_le_bytes()).collect();
                Value::String(base64(&bytes))
            } else {
                json!(vector)
            };
            json!({"object": "embedding", "index": index, "embedding": embedding})
        })
        .collect();
    let tokens = ask.prompt_tokens;
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    let body = json!({"object": "list", "data": rows, "model": ask.model, "usage": usage});
    Bytes::from(body.to_string())
}

fn vector(dice: &mut Dice, dimensions: usize) -> Vec<f32> {
    let raw: Vec<f32> = (0..dimensions)
        .map(|_| {
            let [low, high, ..] = dice.throw().to_le_bytes();
            f32::from(u16::from_le_bytes([low, high])) / 32_768.0 - 1.0
        })
        .collect();
    let length = raw.iter().map(|v| v * v).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    raw.into_iter().map(|v| v / length).collect()
}

/// Standard base64 with padding (RFC 4648 4).
fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let sign = usize::try_from(bits >> (18 - 6 * at) & 63).unwrap_or(0);
            let sign = SIGNS.get(sign).copied().unwrap_or(b'A');
            text.push(if at <= three.len() { char::from(sign) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded_as_the_rfc_says() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn vectors_have_unit_length() {
        let vector = vector(&mut Dice::of(1, &["x"]), 64);
        let length: f32 = vector.iter().map(|v| v * v).sum();
        assert!((length - 1.0).abs() < 1e-4);
    }
}
