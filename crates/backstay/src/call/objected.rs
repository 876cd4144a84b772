//! A provider that objects to a part of the request which asks nothing: the same target is asked again
//! without it, at once, and what was learned holds for the calls that follow.

use backstay_wire::amend::Objection;

use super::{Call, Plan};
use crate::attempt::Failure;
use crate::route::Armed;

impl Call {
    /// What the target at `index` is not sent.
    pub(crate) fn objections(&self, index: usize) -> Vec<Objection> {
        let mut all =
            self.stops.get(index).map(|stop| stop.health.objections()).unwrap_or_default();
        let own = self.objections.iter().filter(|(at, _)| *at == index).map(|(_, own)| *own);
        for objection in own {
            if !all.contains(&objection) {
                all.push(objection);
            }
        }
        all
    }

    /// Plans to ask the same target again without what it objects to. `false`: it objects to nothing
    /// that can go, it did so before, or no attempt is left.
    pub(super) fn amends(&mut self, armed: &Armed, failure: &Failure) -> bool {
        let Some(objection) = failure.provider.as_deref().and_then(Objection::of) else {
            return false;
        };
        let spent = self.attempts >= self.contract.route.max_attempts;
        if spent || self.objections(armed.index).contains(&objection) || !self.holds(objection) {
            return false;
        }
        self.objections.push((armed.index, objection));
        if objection.is_lasting() {
            armed.held.learn_objection(objection);
        }
        self.objected(objection);
        self.plan = Plan::Stay;
        true
    }

    /// Whether the caller's request has what is objected to. What only our own writing of it holds is
    /// there in any case.
    fn holds(&self, objection: Objection) -> bool {
        let (head, body) = (&self.contract.head, &self.contract.ask.body);
        match objection {
            Objection::Field(field) => head.span(field).is_some(),
            Objection::SignedThinking => memchr::memmem::find(body, b"thinking").is_some(),
            Objection::OldCap | Objection::NewCap | Objection::ToolIds => true,
        }
    }
}
