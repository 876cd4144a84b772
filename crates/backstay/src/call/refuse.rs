//! A request that is refused before a call begins: broken, unknown, late, or one too many.
//!
//! It gets an id, a row and a count like any other, so that an operator who is shown the error can
//! find it.

use std::sync::Arc;

use backstay_decide::Moment;

use super::Would;
use crate::contract::{Ask, Caller};
use crate::engine::Engine;
use crate::fault::CallError;
use crate::record::trail::milliseconds;
use crate::record::{Outcome, Receipt, Row};

/// What is kept of a request in case it is refused.
#[derive(Debug)]
pub(super) struct Door {
    dialect: &'static str,
    arrived: Moment,
    caller: Option<Arc<Caller>>,
}

impl Door {
    pub(super) fn of(ask: &Ask) -> Self {
        Self { dialect: ask.dialect.name(), arrived: ask.arrived, caller: ask.caller.clone() }
    }

    /// Writes the refusal down and gives the error its receipt.
    pub(super) fn refuse(self, engine: &Engine, error: CallError) -> CallError {
        engine.metrics().refused(error.code());
        let call_id = self.put(engine, &error, Outcome::Failed, "");
        error.with_receipt(Receipt {
            call_id,
            outcome: Outcome::Failed,
            target: None,
            tier: None,
            attempts: 0,
            fingerprint: String::new(),
            edits: Vec::new(),
            cost: None,
            rescued: None,
            notes: Vec::new(),
        })
    }

    /// Writes down that the request would have been refused with `error`; it goes through all the
    /// same.
    pub(super) fn watched(self, engine: &Engine, error: &CallError) {
        let would = Would::Refused.word();
        engine.metrics().watched("none", would);
        self.put(engine, error, Outcome::Watched, would);
    }

    /// Writes the row, and gives the call's id.
    fn put(
        self,
        engine: &Engine,
        error: &CallError,
        outcome: Outcome,
        would: &'static str,
    ) -> String {
        let call_id = engine.new_id();
        let took = engine.now().since(self.arrived);
        let arrived = engine.clock().wall().saturating_sub(took);
        let caller = self.caller.as_deref();
        engine.call_log().put(Row {
            call_id: call_id.clone(),
            at_ms: u64::try_from(arrived.as_millis()).unwrap_or(u64::MAX),
            dialect: self.dialect.into(),
            caller: caller.map(|caller| caller.name.clone()).unwrap_or_default(),
            tenant: caller.map(|caller| caller.tenant.clone()).unwrap_or_default(),
            outcome: outcome.word().into(),
            would: would.into(),
            code: error.code().into(),
            latency_ms: milliseconds(took),
            ..Row::default()
        });
        call_id
    }
}
