//! Writes the trail of an uneventful call in few bytes.
//!
//! Most calls are one request and one good reply. Their trail says little that the row's other
//! columns do not, so it is kept as a short array and told in full again when it is read.

use serde::{Deserialize, Serialize};

use crate::record::Row;
use crate::record::trail::{Note, Step, Trail, Word};

/// The steps of an uneventful call, without what the row says anyway. An array in JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Brief(
    [f64; 5],
    (u64, Word, u64, Word, Option<u64>),
    (Word, String, [u32; 4], Option<[u64; 3]>),
    (Option<u16>, f64, Option<f64>, bool),
    // Rows of earlier versions have none.
    #[serde(default)] [u8; 3],
);

/// Where a timer comes from, by number.
const FROM: [&str; 4] = ["", "set", "static", "derived"];

/// Writes the trail of `row` behind `text` as JSON: short where the call was uneventful.
pub(super) fn write(row: &Row, text: &mut Vec<u8>) {
    let before = text.len();
    let written = match brief(row) {
        Some(brief) => serde_json::to_writer(&mut *text, &brief),
        None => serde_json::to_writer(&mut *text, &row.trail),
    };
    if written.is_err() {
        text.truncate(before);
    }
}

/// The trail that `text` says, with the columns of `row`. Empty where it cannot be read.
pub(super) fn read(row: &Row, text: &str) -> Trail {
    if !text.starts_with('[') {
        return serde_json::from_str(text).unwrap_or_default();
    }
    serde_json::from_str(text).map(|brief| told(row, brief)).unwrap_or_default()
}

fn brief(row: &Row) -> Option<Brief> {
    let [settled, sent, came, judged, ended] = row.trail.notes.as_slice() else { return None };
    let at = [settled.at_ms, sent.at_ms, came.at_ms, judged.at_ms, ended.at_ms];
    let Step::Settled { deadline_ms, deadline_from, bytes, cap_of, cap, .. } = &settled.step else {
        return None;
    };
    let Step::Sent {
        attempt: 1,
        form,
        fingerprint,
        limits_ms,
        limits_from,
        budget,
        losses,
        lowered,
        ..
    } = &sent.step
    else {
        return None;
    };
    let Step::Came {
        attempt: 1, status, fault: None, took_ms, first_token_ms, usage, note, ..
    } = &came.step
    else {
        return None;
    };
    let Step::Judged { verdict, errors } = &judged.step else { return None };
    let Step::Ended { code: None, note: last, .. } = &ended.step else { return None };
    let plain = losses.is_empty()
        && lowered.is_empty()
        && note.is_empty()
        && errors.is_empty()
        && last.is_empty();
    // The columns hold sums; they stand for this one reply only where it told both counts.
    let counted = usage.is_none_or(|(input, output)| {
        input == Some(row.input_tokens) && output == Some(row.output_tokens)
    });
    (plain && counted && verdict == "ok").then(|| {
        Brief(
            at,
            (*deadline_ms, deadline_from.clone(), *bytes, cap_of.clone(), *cap),
            (form.clone(), fingerprint.clone(), *limits_ms, *budget),
            (*status, *took_ms, *first_token_ms, usage.is_some()),
            limits_from.each_ref().map(number),
        )
    })
}

fn number(from: &Word) -> u8 {
    let place = FROM.iter().position(|name| name == from).unwrap_or(0);
    u8::try_from(place).unwrap_or(0)
}

fn told(row: &Row, brief: Brief) -> Trail {
    let Brief(at, settled, sent, came, from) = brief;
    let from = from.map(|number| FROM.get(usize::from(number)).copied().unwrap_or("").into());
    let (deadline_ms, deadline_from, bytes, cap_of, cap) = settled;
    let (form, fingerprint, limits_ms, budget) = sent;
    let (status, took_ms, first_token_ms, counted) = came;
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let steps = [
        Step::Settled {
            route: row.route.clone(),
            deadline_ms,
            deadline_from,
            bytes,
            cap_of,
            cap,
            fingerprint: row.fingerprint.clone(),
        },
        Step::Sent {
            attempt: 1,
            target: row.target.clone(),
            tier: row.tier,
            form,
            fingerprint,
            limits_ms,
            limits_from: from,
            budget,
            losses: Vec::new(),
            lowered: Vec::new(),
        },
        Step::Came {
            attempt: 1,
            status,
            fault: None,
            note: String::new(),
            took_ms,
            first_token_ms,
            provider_request_id: some(&row.provider_request_id),
            finish: some(&row.finish).map(Into::into),
            usage: counted.then_some((Some(row.input_tokens), Some(row.output_tokens))),
        },
        Step::Judged { verdict: "ok".into(), errors: Vec::new() },
        Step::Ended { outcome: row.outcome.clone(), code: None, note: String::new() },
    ];
    let notes = at.into_iter().zip(steps).map(|(at_ms, step)| Note { at_ms, step });
    Trail { notes: notes.collect() }
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::record::Row;
    use crate::record::trail::{Note, Step, Trail};

    fn uneventful() -> Row {
        let step = |at_ms, step| Note { at_ms, step };
        let notes = vec![
            step(
                0.1,
                Step::Settled {
                    route: "r".into(),
                    deadline_ms: 30_000,
                    deadline_from: "route".into(),
                    bytes: 99,
                    cap_of: "route".into(),
                    cap: Some(300),
                    fingerprint: "0123456789ab".into(),
                },
            ),
            step(
                0.2,
                Step::Sent {
                    attempt: 1,
                    target: "main".into(),
                    tier: 2,
                    form: "plain".into(),
                    fingerprint: "ba9876543210".into(),
                    limits_ms: [1, 2, 3, 4],
                    limits_from: ["set".into(), "static".into(), "derived".into()],
                    budget: Some([5, 6, 7]),
                    losses: Vec::new(),
                    lowered: Vec::new(),
                },
            ),
            step(
                9.5,
                Step::Came {
                    attempt: 1,
                    status: Some(200),
                    fault: None,
                    note: String::new(),
                    took_ms: 9.3,
                    first_token_ms: None,
                    provider_request_id: Some("req-1".into()),
                    finish: Some("complete".into()),
                    usage: Some((Some(11), Some(12))),
                },
            ),
            step(9.6, Step::Judged { verdict: "ok".into(), errors: Vec::new() }),
            step(9.7, Step::Ended { outcome: "answered".into(), code: None, note: String::new() }),
        ];
        Row {
            route: "r".into(),
            fingerprint: "0123456789ab".into(),
            target: "main".into(),
            tier: 2,
            provider_request_id: "req-1".into(),
            finish: "complete".into(),
            outcome: "answered".into(),
            input_tokens: 11,
            output_tokens: 12,
            trail: Trail { notes },
            ..Row::default()
        }
    }

    fn write(row: &Row) -> String {
        let mut text = Vec::new();
        super::write(row, &mut text);
        String::from_utf8(text).unwrap()
    }

    fn json(trail: &Trail) -> String {
        serde_json::to_string(trail).unwrap()
    }

    #[test]
    fn an_uneventful_trail_is_short_and_comes_back_whole() {
        let row = uneventful();
        let text = write(&row);
        assert!(text.starts_with('[') && text.len() < 200, "{} bytes: {text}", text.len());
        assert_eq!(json(&read(&row, &text)), json(&row.trail));
        let old = text.replace(",[1,2,3]]", "]");
        assert_ne!(old, text);
        let Step::Sent { limits_from, .. } = &read(&row, &old).notes[1].step else { panic!() };
        assert_eq!(limits_from, &["", "", ""], "a row of an earlier version");
    }

    #[test]
    fn anything_eventful_is_kept_as_it_is() {
        let mut rows = [uneventful(), uneventful(), uneventful()];
        rows[0].trail.notes.pop();
        rows[1].input_tokens = 99;
        rows[2]
            .trail
            .notes
            .insert(2, Note { at_ms: 1.0, step: Step::Waited { ms: 5.0, why: "x".into() } });
        for row in rows {
            let text = write(&row);
            assert!(text.starts_with('{'), "{text}");
            assert_eq!(json(&read(&row, &text)), json(&row.trail));
        }
    }
}
