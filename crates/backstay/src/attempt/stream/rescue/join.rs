//! Reads a new reply beside what was sent of the old one, and lets it out from there on.
//!
//! Compared is the decoded text of each channel, run by run, never a chunk: two providers, or the same
//! one twice, cut the same text differently. The first difference ends it; nothing was let out until
//! then, so no byte of one reply ever stands beside a byte of the other.

use backstay_wire::Delta;

use super::sent::{Channel, Run, Sent};

/// How far a new reply is that has been the same so far.
#[derive(Debug, Default)]
pub(in crate::attempt::stream) struct Skip {
    /// The run it is in.
    run: usize,
    /// Bytes of that run that were the same.
    at: usize,
    /// Bytes of all runs that were the same.
    same: usize,
}

/// The new reply is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::attempt::stream) struct Differs {
    /// Bytes of text and reasoning that were the same.
    pub(in crate::attempt::stream) same: usize,
}

impl Skip {
    /// Whether all that was sent has come again.
    pub(super) fn is_past(&self, sent: &Sent) -> bool {
        self.run >= sent.runs().len()
    }

    /// Appends to `out` what of `delta` goes on to the caller.
    ///
    /// # Errors
    /// It is not what was sent.
    pub(super) fn take(
        &mut self,
        sent: &Sent,
        delta: Delta,
        out: &mut Vec<Delta>,
    ) -> Result<(), Differs> {
        if self.is_past(sent) {
            out.push(delta);
            return Ok(());
        }
        match delta {
            Delta::Text(text) => {
                let rest = self.compare(sent.runs(), Channel::Text, &text)?;
                out.extend(rest.map(|rest| Delta::Text(rest.to_owned())));
                Ok(())
            }
            Delta::Reasoning(text) => {
                let rest = self.compare(sent.runs(), Channel::Reasoning, &text)?;
                out.extend(rest.map(|rest| Delta::Reasoning(rest.to_owned())));
                Ok(())
            }
            Delta::Usage(_)
            | Delta::Alive
            | Delta::Error(_)
            | Delta::Quirk(_)
            | Delta::Unknown(_) => {
                out.push(delta);
                Ok(())
            }
            // It was named before; it signs reasoning that the caller has, signed or not; and no writer says odds.
            Delta::Start { .. }
            | Delta::Signature(_)
            | Delta::Logprobs(_)
            | Delta::OtherChoice { .. } => Ok(()),
            Delta::Refusal(_)
            | Delta::ToolStart { .. }
            | Delta::ToolArguments { .. }
            | Delta::Finish { .. }
            | Delta::End
            | Delta::Untold(_) => Err(self.differs()),
        }
    }

    /// What of `text` goes beyond what was sent.
    fn compare<'t>(
        &mut self,
        runs: &[Run],
        channel: Channel,
        text: &'t str,
    ) -> Result<Option<&'t str>, Differs> {
        let Some(run) = runs.get(self.run) else { return Ok(Some(text)) };
        let left = run.text.as_bytes().get(self.at..).unwrap_or_default();
        let same = left.iter().zip(text.as_bytes()).take_while(|(a, b)| a == b).count();
        if run.channel != channel || same < left.len().min(text.len()) {
            self.same += if run.channel == channel { same } else { 0 };
            return Err(self.differs());
        }
        self.same += same;
        self.at += same;
        if same < left.len() {
            return Ok(None);
        }
        (self.run, self.at) = (self.run + 1, 0);
        match text.get(same..).filter(|rest| !rest.is_empty()) {
            // The other channel has to come first.
            Some(_) if self.run < runs.len() => Err(self.differs()),
            rest => Ok(rest),
        }
    }

    fn differs(&self) -> Differs {
        Differs { same: self.same }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Runs = Vec<(bool, String)>;

    fn delta(is_text: bool, text: &str) -> Delta {
        if is_text { Delta::Text(text.to_owned()) } else { Delta::Reasoning(text.to_owned()) }
    }

    /// The runs cut into pieces of `sizes` characters, in turn.
    fn cut(runs: &Runs, sizes: &[usize]) -> Vec<Delta> {
        let (mut sizes, mut out) = (sizes.iter().cycle(), Vec::new());
        for (is_text, text) in runs {
            let mut chars = text.chars().peekable();
            while chars.peek().is_some() {
                let piece: String = chars.by_ref().take(*sizes.next().unwrap_or(&1)).collect();
                out.push(delta(*is_text, &piece));
            }
        }
        out
    }

    /// Neighbours of one channel joined, the empty ones gone.
    fn joined(deltas: &[Delta]) -> Runs {
        let mut runs: Runs = Vec::new();
        for delta in deltas {
            let (is_text, text) = match delta {
                Delta::Text(text) => (true, text),
                Delta::Reasoning(text) => (false, text),
                _ => continue,
            };
            match runs.last_mut().filter(|(last, _)| *last == is_text) {
                Some((_, run)) => run.push_str(text),
                None => runs.push((is_text, text.clone())),
            }
        }
        runs
    }

    fn characters(runs: &Runs) -> Vec<(bool, char)> {
        runs.iter().flat_map(|(is_text, text)| text.chars().map(|c| (*is_text, c))).collect()
    }

    /// What comes out when `new` is read beside `old`.
    fn read(old: &[Delta], new: Vec<Delta>) -> (Vec<Delta>, Option<Differs>, bool) {
        let mut sent = Sent::default();
        sent.told(old);
        let (mut skip, mut out) = (Skip::default(), Vec::new());
        for delta in new {
            if let Err(differs) = skip.take(&sent, delta, &mut out) {
                return (out, Some(differs), false);
            }
        }
        let is_past = skip.is_past(&sent);
        (out, None, is_past)
    }

    fn any_runs() -> impl Strategy<Value = Runs> {
        prop::collection::vec((any::<bool>(), "[ab é🚂]{1,12}"), 1..6)
    }

    proptest! {
        #[test]
        fn old_and_new_together_are_the_whole_reply_however_either_was_cut(
            runs in any_runs(), at in 0..40_usize,
            old in prop::collection::vec(1..5_usize, 1..4),
            new in prop::collection::vec(1..5_usize, 1..4),
        ) {
            let whole = cut(&runs, &old);
            let at = at.min(whole.len());
            let (out, differs, is_past) = read(&whole[..at], cut(&runs, &new));
            prop_assert_eq!(differs, None);
            prop_assert!(is_past);
            let told: Vec<Delta> = whole[..at].iter().cloned().chain(out).collect();
            prop_assert_eq!(joined(&told), joined(&whole));
        }

        #[test]
        fn another_reply_lets_nothing_out_before_it_is_told_from_the_old_one(
            old in any_runs(), new in any_runs(), sizes in prop::collection::vec(1..5_usize, 1..4),
        ) {
            let (before, after) = (characters(&old), characters(&new));
            let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
            let (out, differs, is_past) = read(&cut(&old, &[3]), cut(&new, &sizes));
            prop_assert_eq!(is_past, same == before.len() && differs.is_none());
            if same < before.len() {
                prop_assert!(out.is_empty());
                // A reply that ends too early shows at its finish.
                prop_assert_eq!(differs.is_none(), same == after.len());
            }
            if let Some(differs) = differs {
                prop_assert!(differs.same >= before[..same].iter().map(|(_, c)| c.len_utf8()).sum());
            }
        }
    }

    #[test]
    fn a_reply_that_ends_calls_or_refuses_before_it_has_come_so_far_is_another_one() {
        for delta in [
            Delta::Finish { finish: backstay_wire::Finish::Complete, word: None },
            Delta::End,
            Delta::Refusal("no".into()),
            Delta::ToolStart { index: 0, id: "1".into(), name: "t".into() },
            Delta::Untold("a citation".into()),
        ] {
            let new = vec![Delta::Text("ab".into()), delta];
            let (out, differs, _) = read(&[Delta::Text("abc".into())], new);
            assert_eq!((out, differs), (vec![], Some(Differs { same: 2 })));
        }
    }

    #[test]
    fn its_name_is_dropped_and_its_usage_is_kept() {
        let usage = backstay_wire::Usage { input: Some(1), ..backstay_wire::Usage::default() };
        let new = vec![
            Delta::Start { id: "2".into(), model: "m".into() },
            Delta::Usage(usage),
            Delta::Text("abcd".into()),
            Delta::End,
        ];
        let (out, differs, is_past) = read(&[Delta::Text("abc".into())], new);
        assert_eq!((differs, is_past), (None, true));
        assert_eq!(out, vec![Delta::Usage(usage), Delta::Text("d".into()), Delta::End]);
    }
}
