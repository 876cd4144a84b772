//! Seeks another reply for a call whose stream broke after its release.

use backstay_decide::fault::Side;
use backstay_decide::recover::Next;
use backstay_decide::recover::rescue::{self, AfterRelease, Prefill, Released, Way};
use backstay_wire::Reply;
use backstay_wire::chat::Role;

use super::amended::amend;
use super::{Call, End, Plan};
use crate::attempt::Failure;
use crate::attempt::stream::Opened;
use crate::fault::CallError;
use crate::record::Step;
use crate::route::{self, Held};

/// What is known of a stream that broke.
#[derive(Debug)]
pub(super) struct Rescue {
    /// What broke it.
    fault: Failure,
    /// The same for the caller, with the target's name.
    error: CallError,
    /// What was sent, for a target that goes on with it. `None`: none may.
    prose: Option<Box<str>>,
    released: Released,
    /// How the attempt under way, or the last, was to go on.
    way: Way,
    /// Whether some target was given the beginning of its reply and took or refused it.
    continued: bool,
    /// How it came out; for the receipt.
    pub(super) came_out: &'static str,
}

/// A reply that takes the place of a broken one.
#[derive(Debug)]
pub(crate) enum Anew {
    /// A stream with content.
    Stream(Box<Opened>, Box<Held>),
    /// A whole reply, judged and booked.
    Whole(Box<Reply>),
}

/// Fields of a request by which the events hold more than text: it would be missing from a stream that
/// goes on in our words.
const MORE_THAN_TEXT: [&str; 4] = ["logprobs", "modalities", "audio", "web_search_options"];

impl Call {
    /// Whether another reply may take the place of this one's stream.
    ///
    /// # Errors
    /// It may not, for this reason.
    pub(crate) fn joins(&self) -> Result<(), &'static str> {
        if self.contract.route.after_release == AfterRelease::Error {
            return Err("the route ends a stream that breaks");
        }
        if self.contract.most_choices() > 1 {
            return Err("several choices were asked for");
        }
        let raw = |key: &&str| self.contract.head.raw(&self.contract.ask.body, key);
        let asks = |key: &&str| !matches!(raw(key), None | Some(b"null" | b"false"));
        if MORE_THAN_TEXT.iter().any(asks) {
            return Err("more than text was asked for");
        }
        Ok(())
    }

    /// Decides about a stream that broke by `failure`; true: another reply is to be sought.
    pub(crate) fn rescues(
        &mut self,
        failure: &Failure,
        released: Released,
        prose: Option<&str>,
    ) -> bool {
        let policy = self.contract.route.after_release;
        if policy == AfterRelease::Error || self.contract.is_unheard() {
            return false;
        }
        let (released, prose) = match prose {
            Some(_) if self.wants_more_than_prose() => (Released::Comparable, None),
            prose => (released, prose.map(Box::from)),
        };
        let error = self.stream_error(failure);
        let decision =
            self.decide_by(failure, |facts, dice| rescue::decide(policy, released, facts, dice));
        let target = self.target_id();
        let why = format!(
            "the stream from {target} broke after its release ({}: {}): {}",
            failure.fault.code(),
            failure.note,
            decision.why
        );
        let (Next::Again { .. } | Next::Elsewhere) = decision.next else {
            self.tell(Step::Decided { next: "end".into(), why });
            return false;
        };
        let next = if decision.next == Next::Elsewhere { "elsewhere" } else { "again" };
        self.tell(Step::Decided { next: next.into(), why });
        self.follow(decision.next, failure.clone(), None);
        match &mut self.rescue {
            Some(rescue) => (rescue.prose, rescue.released) = (prose, released),
            None => {
                self.rescue = Some(Box::new(Rescue {
                    fault: failure.clone(),
                    error,
                    prose,
                    released,
                    way: Way::Restart,
                    continued: false,
                    came_out: "failed",
                }));
            }
        }
        true
    }

    /// Whether the answer has a form, or effects, or a beginning of the caller's own.
    fn wants_more_than_prose(&self) -> bool {
        let contract = &self.contract;
        contract.wants_json()
            || contract.offers_tools()
            || contract.neutral().map_or(true, |chat| {
                chat.turns.last().is_none_or(|turn| turn.role == Role::Assistant)
            })
    }

    /// What the target at `index` is to go on with. `None`: it answers anew.
    pub(crate) fn prefill(&self, index: usize) -> Option<&str> {
        let rescue = self.rescue.as_ref()?;
        let takes = self.stops.get(index)?.target.prefill.is_some();
        let prefill = match (takes, rescue.continued) {
            (true, false) => Prefill::Taken,
            (true, true) => Prefill::Spent,
            (false, _) => Prefill::Refused,
        };
        match rescue::way(self.contract.route.after_release, rescue.released, prefill) {
            Way::Continue => rescue.prose.as_deref().map(str::trim_end),
            Way::Restart => None,
        }
    }

    /// An attempt goes out that is to go on with what was sent in this way.
    pub(crate) fn goes_on(&mut self, way: Way) {
        if let Some(rescue) = &mut self.rescue {
            rescue.way = way;
        }
    }

    /// How the last attempt was to go on with what was sent.
    pub(crate) fn way(&self) -> Way {
        self.rescue.as_ref().map_or(Way::Restart, |rescue| rescue.way)
    }

    /// What broke the first stream, and how the caller is told. `None`: nothing was to be rescued.
    pub(crate) fn original(&self) -> Option<(&Failure, &CallError)> {
        self.rescue.as_ref().map(|rescue| (&rescue.fault, &rescue.error))
    }

    /// Seeks a reply that takes the place of the broken one. `None`: there is none.
    pub(crate) async fn seek_anew(&mut self) -> Option<Anew> {
        loop {
            let step = route::next(self);
            if self.take(step).await.is_some() {
                break;
            }
            self.reconsider();
            if self.contract.is_unheard() {
                return None;
            }
        }
        let anew = match self.end.take()? {
            End::Stream(opened, held) => {
                self.contract.set_asked(true);
                Anew::Stream(opened, Box::new(held))
            }
            End::Reply(whole, _, amended) => {
                let mut reply = whole.reply;
                amend(&mut reply, amended);
                Anew::Whole(Box::new(reply))
            }
            End::LastResort | End::Fail(_) => return None,
        };
        if let Some(rescue) = self.rescue.as_mut().filter(|rescue| rescue.way == Way::Continue) {
            rescue.continued = true;
        }
        Some(anew)
    }

    /// A target that refuses the beginning of its reply says nothing of the request without it.
    fn reconsider(&mut self) {
        let is_refused = self.plan == Plan::Over
            && matches!(self.end, Some(End::Fail(_) | End::LastResort))
            && self.last.as_ref().is_some_and(|last| last.fault.side() == Side::Caller);
        let Some(rescue) = self.rescue.as_mut().filter(|_| is_refused) else { return };
        if std::mem::replace(&mut rescue.way, Way::Restart) != Way::Continue {
            return;
        }
        rescue.continued = true;
        let (fault, released) = (rescue.fault.clone(), rescue.released);
        let policy = self.contract.route.after_release;
        let decision =
            self.decide_by(&fault, |facts, dice| rescue::decide(policy, released, facts, dice));
        let why = format!("the beginning of a reply is not taken: {}", decision.why);
        if matches!(decision.next, Next::Again { .. } | Next::Elsewhere) {
            self.tell(Step::Decided { next: "restart".into(), why });
            self.end = None;
            self.follow(decision.next, fault, None);
        }
    }

    /// The reply that was to take the place of the broken one is another one.
    pub(crate) fn differed(&mut self, same: usize) {
        let target = self.target_id();
        let why = format!("the reply of {target} differs from what was sent after {same} bytes");
        self.tell(Step::Decided { next: "end".into(), why });
        self.comes_out("differs");
    }

    /// The rescued stream is whole.
    pub(super) fn is_rescued(&mut self) {
        let way = self.way().word();
        self.comes_out(way);
    }

    /// Counts once how the rescue came out.
    pub(super) fn comes_out(&mut self, how: &'static str) {
        if let Some(rescue) = &mut self.rescue {
            rescue.came_out = how;
        }
    }

    /// Counts the rescue, if there was one.
    pub(super) fn count_rescue(&self) {
        if let Some(rescue) = &self.rescue {
            let route = &self.contract.route.name;
            self.engine.metrics().rescued(route, rescue.way.word(), rescue.came_out);
        }
    }
}
