//! How the streams of `[routes.NAME]` are handed on.

use std::time::Duration;

use backstay::policy::{GuardPolicy, Holding, Pace, StreamMode, Tokens, Window};

use jsonmend::Several;

use super::Loading;
use crate::config::file::RouteTable;

/// The most tokens that a gate or a window holds.
const MOST_TOKENS: u64 = 100_000;

/// The fastest pace that can be asked for, in tokens a second.
const FASTEST: f64 = 100_000.0;

impl Loading<'_> {
    /// How streams are handed on. `None`: the engine goes by whether there is a schema, which a
    /// caller may bring.
    pub(super) fn stream(&mut self, name: &str, table: &RouteTable) -> Option<StreamMode> {
        let checked = table.schema.is_some() || !table.rules.is_empty();
        let Some(word) = table.stream else {
            // A rule that is only looked at afterwards would rule nothing.
            return checked.then_some(StreamMode::Buffered);
        };
        let mode = word.mode();
        if checked && mode != StreamMode::Buffered {
            let message = "streams are handed on before the answer is checked".into();
            let help = "`stream = \"buffered\"` checks first; this route has a schema or rules";
            self.doubt(&["routes", name, "stream"], "unchecked-stream", message, help);
        }
        Some(mode)
    }

    /// What is held of a stream on the way.
    pub(super) fn holding(&mut self, name: &str, table: &RouteTable) -> Holding {
        let window = &table.window;
        self.in_range(&["routes", name, "window", "tokens"], window.tokens.into(), 1..=MOST_TOKENS);
        if let Some(time) = window.time {
            self.timer(&["routes", name, "window", "time"], time.0);
        }
        let time = window.time.map(|time| time.0);
        let window = Window { tokens: Tokens(window.tokens), time };
        Holding { pace: self.pace(name, table), window }
    }

    /// What is looked for in a reply, of which `several` says what counts if it has more than one value.
    pub(super) fn guards(
        &mut self,
        name: &str,
        table: &RouteTable,
        several: Several,
    ) -> GuardPolicy {
        let guards = &table.guards;
        let lengths =
            [("expected_tokens", guards.expected_tokens), ("most_tokens", guards.most_tokens)];
        for (key, tokens) in lengths {
            let tokens = tokens.unwrap_or(1).into();
            self.in_range(&["routes", name, "guards", key], tokens, 1..=u64::MAX);
        }
        if guards.early_stop && !matches!(several, Several::Only | Several::First) {
            let message = "nothing is stopped early: another value than the first may count".into();
            let help = "set `candidates` of `mend` to \"only\" or \"first\"";
            self.doubt(&["routes", name, "guards", "early_stop"], "idle-early-stop", message, help);
        }
        guards.policy(table.on_quiet_refusal)
    }

    /// The pace that opens the gate. `None`: none is asked for, or what is said of it is wrong.
    fn pace(&mut self, name: &str, table: &RouteTable) -> Option<Pace> {
        let path = |key| ["routes", name, "gate", key];
        let (tokens, floor) = match (table.gate.tokens, table.gate.min_tokens_per_second) {
            (None, None) => return None,
            (Some(tokens), Some(floor)) => (tokens, floor),
            (Some(_), None) => return self.half_a_pace(&path("tokens"), "min_tokens_per_second"),
            (None, Some(_)) => return self.half_a_pace(&path("min_tokens_per_second"), "tokens"),
        };
        self.in_range(&path("tokens"), tokens.into(), 1..=MOST_TOKENS);
        let within = Duration::try_from_secs_f64(f64::from(tokens) / floor).ok();
        let within = within.filter(|within| !within.is_zero() && floor <= FASTEST);
        if within.is_none() {
            let message = "`min_tokens_per_second` must be over 0 and at most 100000".into();
            self.wrong(&path("min_tokens_per_second"), "out-of-range", message, "");
        }
        within.map(|within| Pace { tokens: Tokens(tokens), within })
    }

    fn half_a_pace(&mut self, path: &[&str], other: &str) -> Option<Pace> {
        let message = format!("a pace needs `{other}` too");
        self.wrong(
            path,
            "half-a-pace",
            message,
            "such as `{ tokens = 32, min_tokens_per_second = 5 }`",
        );
        None
    }
}
