//! Has all calls spare a target that asked for a rest, or whose key is spent or not taken.

use std::time::Duration;

use backstay_decide::Moment;
use backstay_decide::alert::Kind;
use backstay_decide::breaker::KeyRest;
use backstay_decide::fault::Fault;
use backstay_decide::pacing;
use backstay_decide::time::Secs;

use super::Call;
use crate::attempt::Failure;
use crate::policy::{Pinning, Target};
use crate::route::Held;

/// How long a target rests whose quota is spent, when it does not say.
const QUOTA_REST: Duration = Duration::from_mins(1);

/// How long a key rests that the provider does not take, where there are others.
const REJECTED_REST: Duration = Duration::from_mins(5);

impl Call {
    /// Has all calls spare the target at `index` as its `failure` asks for: it or its key rests, or is
    /// called more slowly. `limits`: what the reply stated.
    pub(super) fn spares(
        &mut self,
        index: usize,
        held: &Held,
        failure: &Failure,
        limits: &[pacing::Seen],
    ) {
        if let Some(stop) = self.stops.get(index) {
            self.rest(&stop.target, held, failure);
        }
        self.throttled(index, held, failure, limits);
    }

    /// Lets a target or a key rest that asked for it. A limit is a key's, overload is everyone's.
    fn rest(&self, target: &Target, held: &Held, failure: &Failure) {
        let until = |delay| self.engine.now().plus(delay);
        let rest_key = |until: Moment, why| held.rest_key(target, until, why);
        match (failure.fault, failure.server_delay) {
            (Fault::Overloaded, Some(delay)) => held.rest_until(until(delay)),
            (Fault::RateLimited, Some(delay)) => rest_key(until(delay), KeyRest::Throttled),
            (Fault::QuotaExhausted, delay) => {
                let rest = delay.unwrap_or(QUOTA_REST);
                rest_key(until(rest), KeyRest::Quota);
                let subject = format!("{} key {}", target.id, held.key());
                self.alert(Kind::QuotaExhausted, &subject, || {
                    format!("its quota or credit is spent; it rests for {}", Secs(rest))
                });
            }
            (Fault::NotFound, _) if target.pinning == Pinning::Pinned => {
                self.alert(Kind::ModelGone, &target.id, || {
                    "the provider says that there is no such model, and its name is pinned".into()
                });
            }
            // An only key is tried again: the fault may be in what it was used for.
            (Fault::Auth, _) if target.keys() > 1 => {
                rest_key(until(REJECTED_REST), KeyRest::Rejected);
            }
            _ => {}
        }
    }

    /// Slows the rate that a 429 was about: the one with nothing left, if the reply named it.
    fn throttled(&mut self, index: usize, held: &Held, failure: &Failure, limits: &[pacing::Seen]) {
        if failure.fault != Fault::RateLimited {
            return;
        }
        let spent = limits.iter().find(|limit| limit.remaining == Some(0));
        let about = spent.map(|limit| limit.dimension);
        if let Some(slowed) = held.throttled(about, self.engine.now()) {
            self.slowed(index, &slowed);
        }
    }
}
