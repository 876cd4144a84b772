//! How the events of a stream are passed on to the caller, and what has passed.

use backstay_decide::fault::Fault;
use backstay_decide::recover::rescue::{Released, Way};
use backstay_wire::chat::{Fold, Quirk};
use backstay_wire::dialect::{StreamPlace, StreamWriter, UsageEvent};
use backstay_wire::{Delta, Dialect, Usage};
use bytes::Bytes;

use super::ends::{Ended, Ends};
use super::rescue::{Differs, Join, Reached, Sent};
use super::{COMMENT, Piece};
use crate::attempt::{Failure, classify};
use crate::call::Call;
use crate::contract::Wants;
use crate::policy::StreamMode;

/// How events are passed on, and what has passed.
#[derive(Debug)]
pub(super) struct Passing {
    pub(super) how: How,
    caller: Dialect,
    usage_asked: bool,
    pub(super) ends: Ends,
    /// What this attempt used, as far as it said.
    pub(super) usage: Usage,
    /// What the attempts used whose words are told together with this one's.
    before: Usage,
    /// Elements of this attempt that are not known here, each counted.
    pub(super) unknown: u64,
    /// The tool calls that were told anew while they came.
    calls: Option<Box<Fold>>,
    /// What was sent, or why no other reply could take this one's place.
    sent: Result<Box<Sent>, &'static str>,
    /// What holds a reply back that takes another one's place.
    join: Option<Box<Join>>,
}

#[derive(Debug)]
pub(super) enum How {
    /// The provider's bytes as they are.
    AsTheyAre,
    /// Written anew in the caller's dialect.
    Anew(Box<StreamWriter>),
}

/// What became of a piece.
pub(super) enum Passed {
    /// These bytes go on; may be empty.
    On(Bytes),
    /// These bytes are the last, and the stream ended so.
    Last(Bytes, Ended),
    /// The stream cannot be trusted any more.
    Broken(Failure),
    /// It is another reply than the caller has begun to read.
    Differs(Differs),
    /// It cannot be told in the caller's dialect; these bytes say so and are the last.
    Untold(Bytes),
}

impl Passing {
    /// For the first stream of `call`.
    pub(super) fn of(call: &Call) -> Self {
        let caller = call.contract.ask.dialect;
        let usage_asked = matches!(call.contract.wants, Wants::Stream { usage: true });
        let how = if call.provider_dialect() == Some(caller) {
            How::AsTheyAre
        } else {
            // Without a name of ours it names the model that answers.
            let created = call.engine.clock().wall().as_secs();
            let place = StreamPlace { created, ..StreamPlace::default() };
            let writer = caller.stream_writer_from(&place, usage_event(usage_asked));
            How::Anew(Box::new(writer))
        };
        let tells_calls =
            matches!(how, How::Anew(_)) && call.contract.stream_mode == StreamMode::Passthrough;
        Self {
            how,
            caller,
            usage_asked,
            calls: tells_calls.then(Box::default),
            ends: Ends::default(),
            usage: Usage::default(),
            before: Usage::default(),
            unknown: 0,
            sent: call.joins().map(|()| Box::default()),
            join: None,
        }
    }

    /// The same for another reply, asked for in this way, that takes the place of the one before.
    pub(super) fn joined(self, way: Way) -> Self {
        let mut before = Usage::default();
        if way == Way::Continue {
            before = self.before.plus(self.usage);
        }
        let usage_event = usage_event(self.usage_asked);
        let how = match (self.how, &self.sent) {
            (How::AsTheyAre, Ok(sent)) => {
                let writer = self.caller.stream_writer_from(sent.place(), usage_event);
                How::Anew(Box::new(writer))
            }
            (How::Anew(mut writer), _) => {
                writer.forget_usage();
                How::Anew(writer)
            }
            (how @ How::AsTheyAre, Err(_)) => how,
        };
        let join = self.sent.as_ref().ok().map(|sent| Box::new(Join::of(way, sent)));
        let answered = self.sent.as_ref().is_ok_and(|sent| sent.has_answered());
        let (ends, usage) = (Ends::going_on(answered), Usage::default());
        Self { how, ends, usage, before, unknown: 0, join, ..self }
    }

    /// What may be done with what was sent.
    pub(super) fn released(&self) -> Released {
        match &self.sent {
            Ok(sent) => sent.released(),
            Err(why) => Released::Beyond(why),
        }
    }

    /// The text that was sent, where it is prose and nothing else.
    pub(super) fn prose(&self) -> Option<&str> {
        self.sent.as_ref().ok().and_then(|sent| sent.prose())
    }

    /// Whether nothing is to be seen of the stream until it has come as far as the one before.
    pub(super) fn is_held_back(&self) -> bool {
        self.join.is_some()
    }

    /// Passes `piece` on.
    pub(super) fn pass(&mut self, piece: Piece) -> Passed {
        let piece = match self.let_out(piece) {
            Ok(Some(piece)) => piece,
            Ok(None) => return Passed::On(Bytes::new()),
            Err(differs) => return Passed::Differs(differs),
        };
        let mut ended = None;
        for delta in &piece.deltas {
            match delta {
                Delta::Unknown(_) => self.unknown += 1,
                Delta::Usage(usage) => self.usage.overwrite(*usage),
                Delta::Error(error) => return Passed::Broken(classify::in_stream(error.clone())),
                Delta::End => match self.whole() {
                    Ok(whole) => ended = Some(whole),
                    Err(failure) => return Passed::Broken(failure),
                },
                // What is told anew is told of the first choice only.
                Delta::OtherChoice { .. } if matches!(self.how, How::Anew(_)) => {}
                delta => {
                    if let Some(calls) = self.calls.as_mut().filter(|_| delta.is_call()) {
                        calls.push(delta);
                    }
                    if let Err(failure) = self.ends.note(delta) {
                        return Passed::Broken(failure);
                    }
                }
            }
        }
        let bytes = self.bytes(piece);
        if matches!(&self.how, How::Anew(writer) if writer.is_broken()) {
            return Passed::Untold(bytes);
        }
        match ended {
            Some(ended) => Passed::Last(bytes, ended),
            None => Passed::On(bytes),
        }
    }

    /// How the stream ended, now that no more comes.
    ///
    /// # Errors
    /// It is not whole, or its tool calls were told as they are not meant: a server that says
    /// arguments again shows so only in the end, and the caller's dialect has no word to take them
    /// back.
    pub(super) fn whole(&mut self) -> Result<Ended, Failure> {
        let ended = self.ends.whole()?;
        let calls = self.calls.take().map(|calls| calls.into_reply());
        if calls.is_some_and(|reply| reply.quirks.contains(&Quirk::ArgumentsAgain)) {
            let note = "the arguments of a tool call came more than once, and all of them are out";
            return Err(Failure::new(Fault::MalformedReply, note));
        }
        Ok(ended)
    }

    /// What of `piece` comes after what was sent. `None`: nothing.
    fn let_out(&mut self, piece: Piece) -> Result<Option<Piece>, Differs> {
        let (Some(join), Ok(sent)) = (&mut self.join, &self.sent) else { return Ok(Some(piece)) };
        let (deltas, reached) = join.take(sent, piece.deltas)?;
        if reached == Reached::Past {
            self.join = None;
        }
        Ok((!deltas.is_empty()).then_some(Piece { deltas, raw: piece.raw }))
    }

    fn bytes(&mut self, piece: Piece) -> Bytes {
        match &mut self.how {
            // The usage event that only we asked for is not the caller's to see.
            How::AsTheyAre if !self.usage_asked && piece.is_usage() => Bytes::new(),
            How::AsTheyAre => {
                if let Ok(sent) = &mut self.sent {
                    sent.pass(self.caller, &piece);
                }
                piece.raw
            }
            How::Anew(_) if piece.deltas.is_empty() => Bytes::from_static(COMMENT),
            How::Anew(writer) => {
                let mut out = Vec::new();
                for delta in &piece.deltas {
                    match delta {
                        Delta::Usage(_) => {
                            writer.write(&Delta::Usage(self.before.plus(self.usage)), &mut out);
                        }
                        delta => writer.write(delta, &mut out),
                    }
                }
                if let Ok(sent) = &mut self.sent {
                    sent.told(&piece.deltas);
                }
                Bytes::from(out)
            }
        }
    }

    /// The dialect's terminal event, where the provider forgot it.
    pub(super) fn terminal(&mut self) -> Bytes {
        if let How::Anew(writer) = &mut self.how {
            let mut out = Vec::new();
            writer.write(&Delta::End, &mut out);
            return Bytes::from(out);
        }
        Bytes::from_static(self.caller.terminal_event())
    }
}

fn usage_event(asked: bool) -> UsageEvent {
    if asked { UsageEvent::Send } else { UsageEvent::Omit }
}
