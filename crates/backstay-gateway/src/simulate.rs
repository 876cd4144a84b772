//! Faults that callers ask for with `x-backstay-simulate`: who may, what is meant, where it is played.
//!
//! The gateway plays nothing itself: whoever builds it may give it a [`Simulator`], as the command
//! `backstay serve` does.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use backstay::contract::{Contract, Dialect};
use backstay::fault::CallError;
use backstay_decide::Local;
use http::{HeaderName, Uri};

use crate::server::Gateway;

/// The header by which a caller asks for a fault.
static SIMULATE: HeaderName = HeaderName::from_static("x-backstay-simulate");

/// Longer orders are refused.
const MAX_ORDER: usize = 200;

/// Plays the faults that callers ask for.
pub trait Simulator: Debug + Send + Sync {
    /// Whether `order` can be played: the name of a behaviour with its parameters.
    ///
    /// # Errors
    /// A sentence that says what is wrong; for an unknown name, with the nearest one.
    fn check(&self, order: &str) -> Result<(), String>;

    /// Plays `order` to whoever asks for `model`, and gives the base URL for `dialect`.
    fn play<'a>(&'a self, order: &'a str, model: &'a str, dialect: Dialect) -> Playing<'a>;
}

/// A base URL to come. An error: nothing can be played, because no socket could be had.
pub type Playing<'a> = Pin<Box<dyn Future<Output = std::io::Result<Uri>> + Send + 'a>>;

/// Whether the caller of `contract` asks for a fault.
pub(crate) fn is_asked(contract: &Contract) -> bool {
    contract.ask.headers.contains_key(&SIMULATE)
}

/// Puts the fault that its caller asks for into `contract`.
///
/// # Errors
/// The caller may not, or it cannot be played.
pub(crate) async fn arrange(gateway: &Gateway, contract: &mut Contract) -> Result<(), CallError> {
    if contract.ask.caller.as_ref().is_some_and(|caller| !caller.dev) {
        let note = "`x-backstay-simulate` is for keys with `dev = true` in [keys.NAME]";
        return Err(CallError::local(Local::Forbidden, note));
    }
    let Some(simulator) = gateway.simulator() else {
        return Err(wrong("this gateway was built without a simulator"));
    };
    let header = contract.ask.headers.get(&SIMULATE).and_then(|value| value.to_str().ok());
    let Some(header) = header.filter(|text| text.len() <= MAX_ORDER) else {
        return Err(wrong(&format!("it is no text of at most {MAX_ORDER} ASCII characters")));
    };
    let order = order(header);
    simulator.check(&order).map_err(|why| wrong(&why))?;
    let Some(dialect) = contract.first_dialect() else { return Ok(()) };
    let model = format!("simulated-{}", contract.call_id);
    let played = simulator.play(&order, &model, dialect).await;
    let base_url = played.map_err(|error| {
        CallError::local(Local::Internal, format!("the fault cannot be played: {error}"))
    })?;
    contract.simulate(order, base_url, model);
    Ok(())
}

fn wrong(why: &str) -> CallError {
    CallError::local(Local::InvalidRequest, format!("`x-backstay-simulate`: {why}"))
}

/// An order as the mock reads it: `NAME@2` is `NAME+times=2`, and `;` stands for `+`, which some
/// clients do not send as it is.
fn order(header: &str) -> String {
    let plain: Vec<&str> = header.split(';').map(str::trim).collect();
    let plain = plain.join("+");
    match plain.split_once('@') {
        Some((name, rest)) => format!("{name}+times={rest}"),
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn an_order_is_read_in_its_three_spellings() {
        for (header, read) in [
            ("silence", "silence"),
            ("status-500@2", "status-500+times=2"),
            ("status-429@1+after=7", "status-429+times=1+after=7"),
            ("status-429; after=7; times=1", "status-429+after=7+times=1"),
            ("status-429+after=7", "status-429+after=7"),
        ] {
            assert_eq!(order(header), read, "{header}");
        }
    }
}
