//! The output cap: how many tokens the model may write, and whose word that is.

use backstay_wire::Dialect;
use backstay_wire::dialect::Malformed;
use backstay_wire::scan::Scanned;

use super::Ask;
use crate::policy::Route;

/// An output cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// Tokens. `None`: nobody set one and the provider's default holds.
    pub tokens: Option<u64>,
    /// Who set it.
    pub owner: CapOwner,
    /// How far it may be raised, once. `None`: not at all.
    pub ceiling: Option<u64>,
}

/// Who set the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapOwner {
    /// The caller. It is never raised: a short reply is what was asked for.
    Caller,
    /// The route.
    Route,
    /// Nobody.
    Nobody,
}

/// The names under which a caller sets a cap.
pub(crate) fn fields(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::OpenaiChat => &["max_completion_tokens", "max_tokens"],
        Dialect::Anthropic => &["max_tokens"],
    }
}

/// The caller's cap, else the route's.
///
/// `Anthropic` callers must send one by their own protocol; SDK users set it high without meaning
/// it as a limit on structure. It is still the caller's word.
pub(super) fn settle(head: &Scanned, ask: &Ask, route: &Route) -> Result<Cap, Malformed> {
    for field in fields(ask.dialect) {
        if head.raw(&ask.body, field).is_none_or(|raw| raw == b"null") {
            continue;
        }
        let tokens = head.unsigned(&ask.body, field)?;
        if tokens == Some(0) && ask.dialect == Dialect::OpenaiChat {
            return Err(Malformed::new(format!("/{field}"), "must be at least 1"));
        }
        return Ok(Cap { tokens, owner: CapOwner::Caller, ceiling: None });
    }
    Ok(match route.max_output_tokens {
        Some(tokens) => Cap {
            tokens: Some(tokens),
            owner: CapOwner::Route,
            ceiling: route.max_output_tokens_ceiling.filter(|ceiling| *ceiling > tokens),
        },
        None => Cap { tokens: None, owner: CapOwner::Nobody, ceiling: None },
    })
}
