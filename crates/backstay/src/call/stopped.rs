//! Tells that a reply was stopped early, and counts what that spared.

use super::Call;
use crate::attempt::{Behind, Stopped};
use crate::policy::Tokens;

impl Call {
    /// Takes note of what a reply was stopped at.
    pub(super) fn stopped_early(&mut self, at: Stopped) {
        let most = self.stop().and_then(|stop| self.output_cap(&stop.target));
        let expected = self.contract.guards.expected_tokens.map(u64::from);
        let most = most.into_iter().chain(expected).min();
        let spared = spared(at, most);
        let note = match (at.why, spared) {
            (Behind::Silence, _) => "no end came behind the value".to_owned(),
            (Behind::More, Some(spared)) => {
                format!(
                    "{} bytes came behind the value; at most {spared} tokens spared",
                    at.dropped
                )
            }
            (Behind::More, None) => format!("{} bytes came behind the value", at.dropped),
        };
        self.notes.push(format!("stopped early: {note}"));
        self.engine.metrics().streams().stopped(self.target_id(), at.why, spared.unwrap_or(0));
    }
}

/// The most tokens that a reply of at most `most` would have had more than it had when it was stopped.
/// `None`: nobody knows. Behind a silence that may have been none.
fn spared(at: Stopped, most: Option<u64>) -> Option<u64> {
    match at.why {
        Behind::Silence => None,
        Behind::More => Some(most?.saturating_sub(Tokens::of(at.wrote).0.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spared_is_the_bound_less_what_came() {
        for (why, wrote, most, told) in [
            (Behind::More, 400, Some(1_000), Some(900)),
            (Behind::More, 401, Some(1_000), Some(899)),
            (Behind::More, 8_000, Some(1_000), Some(0)),
            (Behind::More, 400, None, None),
            (Behind::Silence, 400, Some(1_000), None),
        ] {
            let at = Stopped { why, wrote, dropped: 0 };
            assert_eq!(spared(at, most), told, "{at:?} of {most:?}");
        }
    }
}
