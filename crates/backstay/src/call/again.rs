//! Keeps account of a call's re-asks: what they took, what the next one would take, which errors
//! came back, and the best reply so far.

use std::time::Duration;

use backstay_decide::Money;
use backstay_decide::recover::reask::{Bound, Budget, Cost};
use backstay_wire::Usage;
use backstay_wire::chat::{Choice, Turn};

use super::Call;
use super::pay::priced;
use crate::attempt::{Got, Seen};
use crate::recover::Complaint;
use crate::recover::reask::{self, Wording};
use crate::validate::Unfit;

/// Bytes taken for one token where nobody has counted. 3: less than the 4 of English prose, so that
/// what a re-ask will take is rather guessed too high.
const BYTES_A_TOKEN: u64 = 3;

/// The account. Empty for a call whose first reply is good.
#[derive(Debug, Default)]
pub(super) struct Reasks {
    /// Tokens that the re-asks of this call took; where a provider did not say, as expected.
    tokens: u64,
    /// What they cost, at targets that have a price.
    cost: Money,
    /// How long the last attempt took.
    took: Duration,
    /// Input tokens of the request without a re-ask's turns, as the present target counts them.
    plain: Option<u64>,
    /// What the next re-ask is expected to take, or the one under way.
    expected: Expected,
    /// Errors that the present target has shown, by their kind, and how often.
    seen: Vec<(u64, u32)>,
    /// The turns of the next re-ask, if one is made.
    turns: Vec<Turn>,
}

/// Tokens, as far as they can be foreseen.
#[derive(Clone, Copy, Debug, Default)]
struct Expected {
    input: u64,
    output: u64,
}

impl Reasks {
    /// Another target has other habits.
    pub(super) fn turn(&mut self) {
        self.plain = None;
        self.seen.clear();
    }

    fn saw(&mut self, kind: u64) {
        match self.seen.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, times)) => *times += 1,
            // At most one a re-ask, of which there are at most five.
            None => self.seen.push((kind, 1)),
        }
        // The errors of the last reply stand last.
        self.seen.sort_by_key(|(known, _)| *known == kind);
    }

    fn times_seen(&self) -> u32 {
        self.seen.last().map_or(1, |(_, times)| *times)
    }
}

impl Call {
    /// An attempt is over. One that was a re-ask is paid from the re-asks' budget, also when it
    /// broke down after the provider may have done the work.
    pub(super) fn attempted(&mut self, seen: &Seen) {
        self.reasks.took = seen.took;
        let said = match &seen.result {
            Ok(Got::Whole(whole)) => whole.reply.usage,
            Err(failure) if failure.fault.was_turned_away() => return,
            Ok(Got::Live(_) | Got::Doubtful(..)) | Err(_) => Usage::default(),
        };
        if self.reask.is_empty() {
            self.reasks.plain = said.input.or(self.reasks.plain);
            return;
        }
        let Expected { input, output } = self.reasks.expected;
        let (input, output) = (said.input.unwrap_or(input), said.output.unwrap_or(output));
        let spent = input.saturating_add(output);
        self.reasks.tokens = self.reasks.tokens.saturating_add(spent);
        let tokens = priced(said, input, output);
        let prices = self.stop().and_then(|stop| stop.target.prices);
        let cost = prices.map_or(Money::ZERO, |prices| prices.cost(tokens));
        self.reasks.cost = self.reasks.cost.plus(cost);
    }

    /// A reply failed a check that a re-ask can mend: lays out what one would say and take.
    pub(super) fn prepare_reask(&mut self, choice: &Choice, unfit: &Unfit, usage: Usage) {
        self.reasks.saw(Complaint::kind(&Complaint::all(unfit)));
        let made = self.stop().map_or(0, |stop| stop.reasks);
        let request = self.contract.rule_input(None);
        let schema = self.contract.schema_text();
        let wording = Wording {
            template: self.contract.template.as_ref(),
            schema: &schema,
            request: &request,
            number: made.saturating_add(1),
        };
        let turns = reask::turns(choice, unfit, &wording);
        let added: u64 = turns.iter().map(|turn| tokens(turn.text().len())).sum();
        let plain = self.reasks.plain.unwrap_or_else(|| tokens(self.contract.ask.body.len()));
        self.reasks.expected = Expected {
            input: plain.saturating_add(added),
            output: usage.output.unwrap_or_else(|| tokens(choice.text().len())),
        };
        self.reasks.turns = turns;
    }

    /// What is left of the re-asks.
    pub(super) fn reask_budget(&self) -> Budget {
        let (route, reasks) = (&self.contract.route, &self.reasks);
        let Expected { input, output } = reasks.expected;
        let prices = self.stop().and_then(|stop| stop.target.prices);
        Budget {
            made: self.stop().map_or(0, |stop| stop.reasks),
            allowed: route.reasks,
            seen: reasks.times_seen(),
            took: reasks.took,
            tokens: route.reask.tokens.map(|allowed| Bound {
                spent: reasks.tokens,
                next: input.saturating_add(output),
                allowed,
            }),
            cost: match (route.reask.cost, prices) {
                (None, _) => Cost::Unbound,
                (Some(_), None) => Cost::NoPrice,
                (Some(allowed), Some(prices)) => {
                    let next = prices.most(input, output);
                    Cost::Bound(Bound { spent: reasks.cost, next, allowed })
                }
            },
        }
    }

    /// The same target is asked again, with its reply and the errors.
    pub(super) fn ask_again(&mut self) {
        if let Some(stop) = self.current.and_then(|index| self.stops.get_mut(index)) {
            stop.reasks += 1;
        }
        self.reask = std::mem::take(&mut self.reasks.turns);
    }
}

/// A guess at the tokens in so many bytes.
fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_A_TOKEN)
}
