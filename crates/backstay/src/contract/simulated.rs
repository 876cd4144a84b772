//! A fault that a caller asked for: it stands in for its route's first tier, for this call alone.

use std::sync::Arc;

use http::Uri;

use super::Contract;
use crate::policy::{CredentialSource, Provider, Target, Tariff};

/// What a simulated target is called, in the trail, the row and the metrics.
pub const SIMULATED: &str = "simulated";

/// What stands in for the first tier. Nothing of it is kept: its health begins and ends with the call.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// What is played, as the caller wrote it.
    pub behaviour: String,
    /// Where it is played: the first target of the route but for its address, its key and its prices.
    pub(crate) target: Arc<Target>,
}

impl Contract {
    /// From now on `behaviour` is what the first tier does: it is played at `base_url` to whoever asks
    /// for `model`, in the format of the tier's first target. The other tiers stay as they are.
    pub fn simulate(&mut self, behaviour: String, base_url: Uri, model: String) {
        let Some(first) = self.route.tiers.first().and_then(|tier| tier.first()) else { return };
        let provider = Provider {
            name: SIMULATED.to_owned(),
            base_url,
            credentials: CredentialSource::Nobody,
            headers: Vec::new(),
            ..Provider::clone(&first.provider)
        };
        let target = Target {
            id: SIMULATED.to_owned(),
            provider: Arc::new(provider),
            model: Some(model),
            prices: Some(Tariff::default()),
            ..Target::clone(first)
        };
        self.simulated = Some(Simulated { behaviour, target: Arc::new(target) });
    }

    /// The format in which the first tier is asked. `None`: the route has no target.
    pub fn first_dialect(&self) -> Option<super::Dialect> {
        Some(self.route.tiers.first()?.first()?.provider.dialect)
    }
}
