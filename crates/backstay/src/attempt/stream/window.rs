//! Holds back the newest part of a released stream, so that what a failure spoils is never shown.
//!
//! ```text
//!   provider ──▶ [ newest … oldest ] ──▶ caller
//!                 held: so many tokens    once enough has followed it, or it waited for long enough,
//!                                         or the stream has ended well
//! ```
//! A stream that breaks takes what is held with it.

use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use backstay_wire::Delta;
use tokio::time::{Instant, Sleep};

use super::Piece;
use super::ends::Ends;
use crate::policy;

/// Most bytes of events that are held, whatever they say: more than a window of text ever takes.
const MAX_HELD: usize = 4 << 20;

/// What is held of a stream, the oldest first.
#[derive(Debug)]
pub(super) struct Window {
    /// Bytes of text that are held back.
    most: usize,
    /// The longest that a piece is held, and what rings when the oldest has been.
    time: Option<(Duration, Pin<Box<Sleep>>)>,
    pieces: VecDeque<Kept>,
    /// Bytes of text in `pieces`.
    text: usize,
    /// Bytes of events in `pieces`.
    raw: usize,
    /// Why the model stopped in each choice, as far as it said.
    ends: Ends,
    /// How many choices the stream has to bring.
    choices: usize,
    /// Whether all that is held may leave.
    open: bool,
}

/// One event and when it came.
#[derive(Debug)]
struct Kept {
    piece: Piece,
    text: usize,
    /// `None`: time does not matter.
    came: Option<Instant>,
}

impl Window {
    /// A window on a stream of so many `choices` that holds `pieces` already, which came at `came`,
    /// where time matters.
    pub(super) fn new(
        policy: policy::Window,
        choices: usize,
        pieces: VecDeque<Piece>,
        came: &[Instant],
    ) -> Self {
        let alarm = |time| (time, Box::pin(tokio::time::sleep(time)));
        let mut window = Self {
            most: policy.tokens.bytes(),
            time: policy.time.map(alarm),
            pieces: VecDeque::with_capacity(pieces.len()),
            text: 0,
            raw: 0,
            ends: Ends::default(),
            choices,
            open: false,
        };
        for (at, piece) in pieces.into_iter().enumerate() {
            window.take(piece, came.get(at).copied());
        }
        window
    }

    /// Takes `piece` in. What says that the stream has failed is handed on at once, and what was held
    /// is not.
    pub(super) fn push(&mut self, piece: Piece) {
        let came = self.time.as_ref().map(|_| Instant::now());
        self.take(piece, came);
    }

    fn take(&mut self, piece: Piece, came: Option<Instant>) {
        for delta in &piece.deltas {
            match delta {
                Delta::Error(_) => self.spoil(),
                // The provider says that there are no more choices.
                Delta::End => self.end_of(1),
                delta if self.ends.note(delta).is_err() => self.spoil(),
                _ => {}
            }
        }
        let text = piece.text_bytes();
        self.text += text;
        self.raw += piece.raw.len();
        self.pieces.push_back(Kept { piece, text, came });
    }

    /// The oldest piece, if it may leave now.
    pub(super) fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<Piece> {
        let Some(oldest) = self.pieces.front() else { return Poll::Pending };
        let followed = self.text - oldest.text >= self.most || self.raw > MAX_HELD;
        if !self.open && !followed && self.poll_waited(cx).is_pending() {
            return Poll::Pending;
        }
        match self.pieces.pop_front() {
            Some(Kept { piece, text, .. }) => {
                self.text -= text;
                self.raw -= piece.raw.len();
                Poll::Ready(piece)
            }
            None => Poll::Pending,
        }
    }

    /// Ready when the oldest piece has been held for as long as any may be.
    fn poll_waited(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let oldest = self.pieces.front().and_then(|oldest| oldest.came);
        let (Some(came), Some((time, alarm))) = (oldest, &mut self.time) else {
            return Poll::Pending;
        };
        let due = came + *time;
        if alarm.deadline() != due {
            alarm.as_mut().reset(due);
        }
        alarm.as_mut().poll(cx)
    }

    /// Whether nothing is missing but the end.
    pub(super) fn is_finished(&self) -> bool {
        self.ends.have_finished(self.choices)
    }

    /// No more comes, or the provider holds the stream after its finish: after the finish of every
    /// choice, what is held leaves; else it is lost.
    pub(super) fn end(&mut self) {
        self.end_of(self.choices);
    }

    fn end_of(&mut self, choices: usize) {
        if self.ends.have_finished(choices) {
            self.open = true;
        } else {
            self.spoil();
        }
    }

    /// Whether nothing is held.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Nothing that is held will be shown.
    pub(super) fn spoil(&mut self) {
        self.pieces.clear();
        (self.text, self.raw, self.open) = (0, 0, true);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use backstay_wire::Finish;

    use super::*;
    use crate::policy::Tokens;

    fn text(text: &str) -> Piece {
        Piece { raw: text.to_owned().into(), deltas: vec![Delta::Text(text.into())] }
    }

    fn said(delta: Delta) -> Piece {
        Piece { raw: "-".into(), deltas: vec![delta] }
    }

    fn finish(finish: Finish) -> Piece {
        said(Delta::Finish { finish, word: None })
    }

    fn window(tokens: u32, time: Option<Duration>) -> Window {
        several(1, tokens, time)
    }

    fn several(choices: usize, tokens: u32, time: Option<Duration>) -> Window {
        let policy = policy::Window { tokens: Tokens(tokens), time };
        Window::new(policy, choices, VecDeque::new(), &[])
    }

    /// The bytes of what may leave.
    fn due(window: &mut Window) -> String {
        let mut out = String::new();
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(piece) = window.poll_due(&mut cx) {
            out.push_str(std::str::from_utf8(&piece.raw).unwrap());
        }
        out
    }

    #[test]
    fn a_piece_leaves_when_a_windows_worth_of_text_has_followed_it() {
        let mut window = window(2, None);
        for piece in ["abcd", "efgh", "ij"] {
            window.push(text(piece));
        }
        assert_eq!(due(&mut window), "");
        window.push(text("kl"));
        assert_eq!(due(&mut window), "abcd");
        window.push(finish(Finish::Complete));
        assert_eq!(due(&mut window), "");
        window.push(said(Delta::End));
        assert_eq!(due(&mut window), "efghijkl--");
        assert!(window.is_empty());
    }

    #[test]
    fn what_is_held_when_a_stream_fails_is_never_shown() {
        let error = || finish(Finish::Unknown);
        let ends: [fn(&mut Window); 3] = [Window::spoil, Window::end, |window| {
            window.push(said(Delta::End));
        }];
        for end in ends {
            let mut window = window(2, None);
            window.push(text("abcd"));
            end(&mut window);
            let left = due(&mut window);
            assert!(!left.contains('a'), "{left}");
        }
        let mut window = window(2, None);
        window.push(text("abcd"));
        window.push(error());
        assert_eq!(due(&mut window), "-", "the failure itself is told");
    }

    #[test]
    fn what_is_held_of_several_choices_is_shown_when_all_have_finished() {
        let second = |piece: Piece| Piece {
            raw: piece.raw,
            deltas: piece.deltas.into_iter().map(|delta| Delta::of_choice(1, delta)).collect(),
        };
        let begun = |more: Piece| {
            let mut window = several(2, 100, None);
            for piece in [text("abcd"), second(text("efgh")), finish(Finish::Complete), more] {
                window.push(piece);
            }
            window
        };
        let mut whole = begun(second(finish(Finish::Truncated)));
        assert!(whole.is_finished());
        whole.end();
        assert_eq!(due(&mut whole), "abcdefgh--");
        // Cut, ended by the provider too early, finished in an odd word.
        let mut cut = begun(second(text("ij")));
        assert!(!cut.is_finished());
        cut.end();
        assert_eq!(due(&mut cut), "");
        let mut ended = begun(second(text("ij")));
        ended.push(said(Delta::End));
        assert_eq!(due(&mut ended), "-");
        assert_eq!(due(&mut begun(second(finish(Finish::Unknown)))), "-");
        // One of two: cut, unless the provider says that there are no more.
        for (end, left) in
            [(Window::end as fn(&mut Window), ""), (|w| w.push(said(Delta::End)), "abcd--")]
        {
            let mut window = several(2, 100, None);
            window.push(text("abcd"));
            window.push(finish(Finish::Complete));
            end(&mut window);
            assert_eq!(due(&mut window), left);
        }
    }

    #[test]
    fn a_stream_that_stays_open_after_its_finish_is_shown_whole() {
        let mut window = window(100, None);
        window.push(text("abcd"));
        window.push(finish(Finish::Complete));
        assert_eq!(due(&mut window), "");
        window.end();
        assert_eq!(due(&mut window), "abcd-");
    }

    #[tokio::test(start_paused = true)]
    async fn a_piece_is_held_no_longer_than_the_windows_time() {
        let mut window = window(100, Some(Duration::from_secs(2)));
        window.push(text("abcd"));
        tokio::time::sleep(Duration::from_millis(1500)).await;
        window.push(text("ef"));
        assert_eq!(due(&mut window), "");
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert_eq!(due(&mut window), "abcd");
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(due(&mut window), "ef");
    }
}
