//! Reads a model name as an order: which behaviour, with which parameters.

use std::time::Duration;

use crate::behaviour::{self, Behaviour};

/// What one call is to do.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) behaviour: &'static Behaviour,
    pub(crate) params: Params,
}

/// The parameters, as given. None: the default of the behaviour.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    pub(crate) times: Option<u32>,
    pub(crate) delay: Duration,
    pub(crate) chunks: Option<usize>,
    pub(crate) gap: Duration,
    pub(crate) size: Option<usize>,
    pub(crate) at: Option<usize>,
    pub(crate) prompt_tokens: Option<u64>,
    pub(crate) completion_tokens: Option<u64>,
    pub(crate) wait: Option<Duration>,
    pub(crate) hold: Option<Duration>,
    pub(crate) after: Option<After>,
    pub(crate) should_retry: Option<bool>,
    pub(crate) need: Option<u64>,
    pub(crate) wrong: Option<u32>,
}

/// The value of Retry-After.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum After {
    /// Sent as it was written, so that fractions can be tried.
    Seconds(String),
    Date(Duration),
    Millis(String),
    Garbage,
}

/// Why a model name is no order.
#[derive(Debug, thiserror::Error, PartialEq)]
pub(crate) enum BadOrder {
    #[error("no behaviour is called `{name}`; the nearest is `{nearest}`")]
    Unknown { name: String, nearest: &'static str },
    #[error(
        "`{text}` is no parameter of `{name}`; a parameter is key=value, e.g. `{name}+times=1`"
    )]
    Param { name: &'static str, text: String },
    #[error("`{key}={value}` cannot be read: {wanted}")]
    Value { key: String, value: String, wanted: &'static str },
}

/// More chunks than any real stream has; bounds the memory one request can ask for.
const MAX_CHUNKS: usize = 20_000;
/// 4 MiB: more text than any model writes.
const MAX_SIZE: usize = 4 << 20;
/// A day: longer than any test waits.
const MAX_WAIT: Duration = Duration::from_hours(24);

impl Order {
    /// Reads `NAME[+key=value]*`, with an optional `mock/` or `mock-` before the name and an
    /// optional `-once` (`times=1`) after it.
    pub(crate) fn read(model: &str) -> Result<Self, BadOrder> {
        let text =
            model.strip_prefix("mock/").or_else(|| model.strip_prefix("mock-")).unwrap_or(model);
        let mut parts = text.split('+');
        let name = parts.next().unwrap_or("");
        let mut params = Params::default();
        let behaviour = match (behaviour::named(name), name.strip_suffix("-once")) {
            (Some(found), _) => found,
            (None, Some(stem)) => {
                params.times = Some(1);
                behaviour::named(stem).ok_or_else(|| unknown(name))?
            }
            (None, None) => return Err(unknown(name)),
        };
        for part in parts {
            let Some((key, value)) = part.split_once('=') else {
                return Err(BadOrder::Param { name: behaviour.name, text: part.to_owned() });
            };
            if !params.set(key, value)? {
                return Err(BadOrder::Param { name: behaviour.name, text: part.to_owned() });
            }
        }
        Ok(Self { behaviour, params })
    }
}

fn unknown(name: &str) -> BadOrder {
    BadOrder::Unknown { name: name.chars().take(80).collect(), nearest: behaviour::nearest(name) }
}

impl Params {
    /// Sets one parameter. False: there is none of that name.
    fn set(&mut self, key: &str, value: &str) -> Result<bool, BadOrder> {
        let bad = |wanted| BadOrder::Value { key: key.into(), value: value.into(), wanted };
        let number = || value.parse::<u64>().map_err(|_| bad("a whole number is wanted"));
        let small = |most: usize, wanted| {
            value.parse::<usize>().ok().filter(|n| *n <= most).ok_or_else(|| bad(wanted))
        };
        let count = || value.parse::<u32>().map_err(|_| bad("a whole number is wanted"));
        let time = || duration(value).ok_or_else(|| bad("a time is wanted, e.g. 10ms, 1.5s, 2m"));
        match key {
            "times" => self.times = Some(count()?),
            "delay" => self.delay = time()?,
            "n" => self.chunks = Some(small(MAX_CHUNKS, "0 to 20000 is wanted")?),
            "gap" => self.gap = time()?,
            "size" => self.size = Some(small(MAX_SIZE, "0 to 4194304 is wanted")?),
            "at" => self.at = Some(small(MAX_CHUNKS, "0 to 20000 is wanted")?),
            "prompt_tokens" => self.prompt_tokens = Some(number()?),
            "completion_tokens" => self.completion_tokens = Some(number()?),
            "wait" => self.wait = Some(time()?),
            "hold" => self.hold = Some(time()?),
            "after" => {
                let wanted = "seconds, date, date:SECONDS, ms:N or garbage is wanted";
                self.after = Some(after(value).ok_or_else(|| bad(wanted))?);
            }
            "should_retry" => {
                let wanted = "true or false is wanted";
                self.should_retry = Some(value.parse().map_err(|_| bad(wanted))?);
            }
            "need" => self.need = Some(number()?),
            "k" => self.wrong = Some(count()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Reads `10ms`, `1.5s`, `2m`, or a bare number of milliseconds.
fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = if let Some(number) = text.strip_suffix("ms") {
        (number, 0.001)
    } else if let Some(number) = text.strip_suffix('s') {
        (number, 1.0)
    } else if let Some(number) = text.strip_suffix('m') {
        (number, 60.0)
    } else {
        (text, 0.001)
    };
    let seconds = number.parse::<f64>().ok()? * unit;
    Duration::try_from_secs_f64(seconds).ok().filter(|d| *d <= MAX_WAIT)
}

fn after(text: &str) -> Option<After> {
    // 2 s: the date form has whole seconds, so less would round to "now".
    if text == "date" {
        return Some(After::Date(Duration::from_secs(2)));
    }
    if text == "garbage" {
        return Some(After::Garbage);
    }
    if let Some(seconds) = text.strip_prefix("date:") {
        return seconds.parse::<u32>().ok().map(|s| After::Date(Duration::from_secs(s.into())));
    }
    if let Some(millis) = text.strip_prefix("ms:") {
        return millis.parse::<f64>().ok().map(|_| After::Millis(millis.to_owned()));
    }
    text.parse::<f64>().ok().map(|_| After::Seconds(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parameters_is_read() {
        let order = Order::read("status-429+after=7+times=1").expect("an order");
        assert_eq!(order.behaviour.name, "status-429");
        assert_eq!(order.params.after, Some(After::Seconds("7".into())));
        assert_eq!(order.params.times, Some(1));
    }

    #[test]
    fn prefixes_and_the_once_suffix_are_understood() {
        for model in ["mock/healthy", "mock-healthy", "healthy"] {
            assert_eq!(Order::read(model).expect("an order").behaviour.name, "healthy");
        }
        let once = Order::read("mock/status-500-once+delay=5ms").expect("an order");
        assert_eq!((once.behaviour.name, once.params.times), ("status-500", Some(1)));
        assert_eq!(once.params.delay, Duration::from_millis(5));
    }

    #[test]
    fn an_unknown_name_names_the_nearest() {
        let bad = Order::read("status-43").expect_err("no such behaviour");
        assert!(matches!(bad, BadOrder::Unknown { nearest: "status-413" | "status-403", .. }));
    }

    #[test]
    fn a_parameter_that_cannot_be_read_is_refused() {
        for model in ["healthy+n", "healthy+n=x", "healthy+colour=red", "healthy+n=999999999"] {
            assert!(Order::read(model).is_err(), "{model}");
        }
        for model in ["healthy+gap=soon", "healthy+gap=-1s", "status-429+after=later"] {
            assert!(Order::read(model).is_err(), "{model}");
        }
    }

    #[test]
    fn times_are_read_with_their_units() {
        assert_eq!(duration("10ms"), Some(Duration::from_millis(10)));
        assert_eq!(duration("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Some(Duration::from_mins(2)));
        assert_eq!(duration("30"), Some(Duration::from_millis(30)));
        assert_eq!(duration("NaN"), None);
        assert_eq!(duration("999999999m"), None);
    }

    #[test]
    fn each_form_of_retry_after_is_read() {
        assert_eq!(after("date:9"), Some(After::Date(Duration::from_secs(9))));
        assert_eq!(after("ms:250"), Some(After::Millis("250".into())));
        assert_eq!(after("garbage"), Some(After::Garbage));
        assert_eq!(after("0.5"), Some(After::Seconds("0.5".into())));
    }
}
