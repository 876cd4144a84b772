//! Rate limits that the mock keeps as a strict provider would: no window of a minute ever holds more.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::ask::{Ask, Dialect};

/// Models with limits of their own; a further one is not kept.
const MAX_MODELS: usize = 1_000;
/// The window of a limit.
const MINUTE: Duration = Duration::from_mins(1);

/// What a model may be asked in any minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Requests. `None`: as many as come.
    pub requests: Option<u64>,
    /// Tokens: of the prompt, and of the output cap, which counts in full on arrival. `None`: no limit.
    pub tokens: Option<u64>,
}

/// Every limit, and what has been admitted.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    models: HashMap<String, Meter>,
}

#[derive(Debug, Default)]
struct Meter {
    limit: Limit,
    /// When, in microseconds, and how many tokens; the oldest first.
    admitted: VecDeque<(u64, u64)>,
    tokens: u64,
}

/// How a request stands towards the limit of its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gate {
    pub(crate) limit: Limit,
    /// Requests and tokens left in the minute.
    pub(crate) left: (u64, u64),
    /// Why it is refused, and for how long. `None`: it is admitted.
    pub(crate) over: Option<(String, Duration)>,
}

impl Limits {
    /// Sets the limit of a model; a limit of nothing takes it away.
    pub(crate) fn set(&mut self, model: &str, limit: Limit) {
        if limit == Limit::default() {
            self.models.remove(model);
        } else if self.models.len() < MAX_MODELS || self.models.contains_key(model) {
            self.models.entry(model.to_owned()).or_default().limit = limit;
        }
    }

    /// Forgets what was admitted. The limits stay.
    pub(crate) fn reset(&mut self) {
        for meter in self.models.values_mut() {
            meter.admitted.clear();
            meter.tokens = 0;
        }
    }

    /// Admits a request at `now`, in microseconds, or says why not. `None`: its model has no limit.
    pub(crate) fn take(&mut self, ask: &Ask, now: u64) -> Option<Gate> {
        let tokens = ask.prompt_tokens.saturating_add(ask.max_tokens.unwrap_or(0));
        self.models.get_mut(&ask.model).map(|meter| meter.take(tokens, now))
    }
}

impl Meter {
    fn take(&mut self, tokens: u64, now: u64) -> Gate {
        let minute = u64::try_from(MINUTE.as_micros()).unwrap_or(u64::MAX);
        while self.admitted.front().is_some_and(|(at, _)| at.saturating_add(minute) <= now) {
            self.tokens -= self.admitted.pop_front().map_or(0, |(_, tokens)| tokens);
        }
        let over = self.over(tokens, now, minute);
        if over.is_none() {
            self.admitted.push_back((now, tokens));
            self.tokens += tokens;
        }
        let requests = self.admitted.len() as u64;
        let left = |limit: Option<u64>, used: u64| limit.unwrap_or(0).saturating_sub(used);
        let left = (left(self.limit.requests, requests), left(self.limit.tokens, self.tokens));
        Gate { limit: self.limit, left, over }
    }

    fn over(&self, tokens: u64, now: u64, minute: u64) -> Option<(String, Duration)> {
        let requests = self.admitted.len() as u64;
        let (what, limit, used, asked, leaves) = match self.limit {
            Limit { requests: Some(limit), .. } if requests >= limit => {
                ("requests", limit, requests, 1, self.admitted.front().map(|(at, _)| *at))
            }
            Limit { tokens: Some(limit), .. } if self.tokens.saturating_add(tokens) > limit => {
                let leaves = self.room_for(tokens, limit);
                ("tokens", limit, self.tokens, tokens, leaves)
            }
            Limit { .. } => return None,
        };
        let message = format!(
            "Rate limit reached on {what} per minute: Limit {limit}, Used {used}, Requested {asked}."
        );
        // What can never fit is told to come back when all is free.
        let leaves = leaves.unwrap_or(now).saturating_add(minute);
        Some((message, Duration::from_micros(leaves.saturating_sub(now))))
    }

    /// The arrival of the last request that has to leave the window before `tokens` fit.
    fn room_for(&self, tokens: u64, limit: u64) -> Option<u64> {
        let mut held = self.tokens;
        self.admitted
            .iter()
            .find(|(_, freed)| {
                held -= freed;
                held.saturating_add(tokens) <= limit
            })
            .map(|(at, _)| *at)
    }
}

impl Gate {
    /// The headers that go with every reply of a limited model.
    pub(crate) fn tell(&self, dialect: Dialect, headers: &mut HeaderMap) {
        let rows = [
            ("requests", self.limit.requests, self.left.0),
            ("tokens", self.limit.tokens, self.left.1),
        ];
        for (what, limit, left) in rows {
            let Some(limit) = limit else { continue };
            for (word, value) in [("limit", limit), ("remaining", left)] {
                let name = match dialect {
                    Dialect::OpenAi => format!("x-ratelimit-{word}-{what}"),
                    Dialect::Anthropic => format!("anthropic-ratelimit-{what}-{word}"),
                };
                if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
                    headers.insert(name, HeaderValue::from(value));
                }
            }
        }
        if let Some((_, wait)) = &self.over {
            let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
            if dialect == Dialect::OpenAi {
                headers.insert("retry-after-ms", HeaderValue::from(millis));
            }
            headers.insert(http::header::RETRY_AFTER, HeaderValue::from(millis.div_ceil(1_000)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn meter(requests: Option<u64>, tokens: Option<u64>) -> Meter {
        Meter { limit: Limit { requests, tokens }, ..Meter::default() }
    }

    #[test]
    fn no_minute_holds_more_requests_than_its_limit() {
        let mut meter = meter(Some(2), None);
        assert_eq!(meter.take(1, 0).left, (1, 0));
        assert_eq!(meter.take(1, 10 * SECOND).over, None);
        let (message, wait) = meter.take(1, 20 * SECOND).over.unwrap();
        assert_eq!(wait, Duration::from_secs(40), "{message}");
        assert!(meter.take(1, 60 * SECOND - 1).over.is_some());
        assert_eq!(meter.take(1, 60 * SECOND).over, None, "the first has left the window");
        assert!(meter.take(1, 60 * SECOND).over.is_some(), "the second has not");
    }

    #[test]
    fn tokens_wait_until_enough_of_them_have_left() {
        let mut meter = meter(None, Some(100));
        for at in 0..4 {
            assert_eq!(meter.take(25, at * SECOND).over, None);
        }
        let (message, wait) = meter.take(30, 4 * SECOND).over.unwrap();
        assert_eq!(wait, Duration::from_secs(57), "two have to leave: {message}");
        assert!(message.contains("Limit 100, Used 100, Requested 30"), "{message}");
        assert!(meter.take(101, 5 * SECOND).over.is_some(), "and this never fits");
    }
}
