//! What an operator sees of a running engine, and what he may order.

use std::time::Duration;

use backstay_decide::alert::Kind;
use backstay_decide::breaker::{Mode, Order};
use backstay_decide::spend::Day;

use crate::admit::spend::{Allowance, Spending};
use crate::engine::Engine;
use crate::policy::Target;
use crate::record::Alert;
use crate::route::view::{Sight, view};
use crate::route::{self, TargetHealth};

pub use crate::route::view::{BreakerView, KeyView, TargetView, TimerView};

/// Most targets told of that are not in the config: callers may make up `provider/model` names.
const MAX_UNNAMED: usize = 1_000;

/// The longest an order may hold by itself: a week outlasts any outage an operator sits through.
pub const MAX_ORDER: Duration = Duration::from_hours(24 * 7);

/// No target is named so.
#[derive(Debug, thiserror::Error)]
#[error("no target is named `{0}`")]
pub struct UnknownTarget(pub String);

impl Engine {
    /// Every target of the policy by name, then those that callers named themselves, at most 1,000.
    pub fn targets(&self) -> Vec<TargetView> {
        let plan = self.plan();
        let policy = plan.policy();
        let sight = Sight::at(self.clock());
        let mut known = self.health().all();
        known.sort_by(|one, other| (&one.id, &one.word).cmp(&(&other.id, &other.word)));
        let of = |target: &Target, health: Option<&TargetHealth>| {
            view((target, &policy.routes), health, self.health().ordered(&target.id), sight)
        };
        let configured = policy.targets.values().flat_map(|target| {
            let mut own: Vec<_> = known.iter().filter(|health| health.is_of(target)).collect();
            own.truncate(MAX_UNNAMED);
            match own.as_slice() {
                [] => vec![of(target, None)],
                own => own.iter().map(|health| of(target, Some(health))).collect(),
            }
        });
        let unnamed = known.iter().filter(|health| !policy.targets.contains_key(&health.id));
        let unnamed = unnamed.filter_map(|health| {
            let target = route::target(policy, &health.id)?;
            health.is_of(&target).then(|| of(&target, Some(health)))
        });
        configured.chain(unnamed.take(MAX_UNNAMED)).collect()
    }

    /// What `key`, which may spend `allowed` a day, spent today; also before its first call.
    pub fn spending(&self, key: &str, allowed: Allowance) -> Spending {
        self.purses().level(key, allowed, Day::of(self.clock().wall()))
    }

    /// Puts `mode` on a target, whatever the config says: for `lasts` if that is given, at most
    /// [`MAX_ORDER`], else until it is taken back. `None` takes it back. It outlives a reload.
    ///
    /// # Errors
    /// No target is named so.
    pub fn order(
        &self,
        target: &str,
        mode: Option<Mode>,
        lasts: Option<Duration>,
    ) -> Result<(), UnknownTarget> {
        if route::target(self.plan().policy(), target).is_none() {
            return Err(UnknownTarget(target.to_owned()));
        }
        let since = self.now();
        let until = lasts.map(|lasts| since.plus(lasts.min(MAX_ORDER)));
        self.health().order(target, mode.map(|mode| Order { mode, since, until }));
        let word = mode.map_or("normal", Mode::name);
        let seconds = lasts.map(|lasts| lasts.as_secs());
        tracing::warn!(target_id = target, mode = word, seconds, "an operator ordered a mode");
        self.metrics().ordered(target, word);
        Ok(())
    }
}

/// How long before its day a model's retirement is told of.
const RETIRES_SOON: i32 = 30;

impl Engine {
    /// Tells operators of something, under `[alerts]`; without that `message` is not made. It holds no
    /// prompt, no reply and no key.
    pub fn alert(&self, kind: Kind, subject: &str, message: impl FnOnce() -> String) {
        let Some(policy) = self.plan().policy().alerts.clone() else { return };
        let alert = Alert {
            kind: kind.name(),
            subject: subject.to_owned(),
            message: message(),
            at_ms: self.clock().wall_ms(),
            repeats: 0,
        };
        self.alerts().tell((kind, alert), self.now(), &policy, self.metrics());
    }

    /// The next alert to deliver. Cancelling the wait loses nothing.
    pub(crate) async fn next_alert(&self) -> Alert {
        self.alerts().next().await
    }

    /// Tells of every target whose model is retired or will be within thirty days.
    pub fn tell_retirements(&self) {
        let plan = self.plan();
        let today = self.clock().today();
        for target in plan.policy().targets.values() {
            let Some(day) = target.retires else { continue };
            let left = today.until(day).map_or(i32::MAX, |span| span.get_days());
            if left > RETIRES_SOON {
                continue;
            }
            self.alert(Kind::ModelRetires, &target.id, || match left {
                0.. => format!("the model retires on {day}, in {left} days"),
                _ => format!("the model was to be retired on {day}"),
            });
        }
    }
}
