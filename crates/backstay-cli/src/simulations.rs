//! Plays the faults that callers of our gateway ask for: a mock of its own, started by the first.

use backstay_gateway::simulate::{Playing, Simulator};
use backstay_mock::{Mock, Settings};
use backstay_wire::Dialect;
use http::Uri;
use tokio::sync::OnceCell;

/// A mock on a free loopback port, once somebody asks.
#[derive(Debug, Default)]
pub(crate) struct Simulations {
    mock: OnceCell<Mock>,
}

impl Simulations {
    async fn begin(&self, order: &str, model: &str, dialect: Dialect) -> std::io::Result<Uri> {
        // Nobody looks into its log.
        let settings = Settings { log_bodies: 0, ..Settings::default() };
        let mock = self.mock.get_or_try_init(|| Mock::start(settings)).await?;
        mock.script(model, &[order]);
        let base = match dialect {
            Dialect::OpenaiChat => mock.openai_base(),
            Dialect::Anthropic => mock.anthropic_base(),
        };
        base.parse().map_err(std::io::Error::other)
    }
}

impl Simulator for Simulations {
    fn check(&self, order: &str) -> Result<(), String> {
        Mock::can_play(order)
    }

    fn play<'a>(&'a self, order: &'a str, model: &'a str, dialect: Dialect) -> Playing<'a> {
        Box::pin(self.begin(order, model, dialect))
    }
}
