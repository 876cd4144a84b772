//! Finds where a continuation goes on, when the model first says again what it was given.
//!
//! A model that was given the beginning of its reply mostly goes on from the last word. Some repeat the
//! last sentence, and some begin the whole reply again; and white space at the end of the beginning is
//! not sent, because providers refuse it, so it comes again. The text of the continuation is held until
//! it cannot be such a repetition any more.

/// Most bytes of the end of what was sent that are looked for in the continuation.
const MAX_OVERLAP: usize = 4 << 10;

/// The shortest repetition that is taken for one: a shorter one is by chance now and then, as in
/// `hand` + `and`, and then dropping it would damage the text.
const MIN_OVERLAP: usize = 16;

/// The end of what was sent, and what came since.
#[derive(Debug)]
pub(in crate::attempt::stream) struct Seam {
    /// The last of what the model was given.
    tail: String,
    /// White space at the end of what was sent that the model was not given.
    space: String,
    held: String,
}

impl Seam {
    /// A seam behind `sent`.
    pub(super) fn behind(sent: &str) -> Self {
        let given = sent.trim_end();
        let from = given.ceil_char_boundary(given.len().saturating_sub(MAX_OVERLAP));
        let (_, tail) = given.split_at(from);
        let (_, space) = sent.split_at(given.len());
        Self { tail: tail.to_owned(), space: space.to_owned(), held: String::new() }
    }

    /// Whether `sent` is long enough for its repetition to be told from chance.
    pub(super) fn fits(sent: &str) -> bool {
        sent.trim_end().len() >= MIN_OVERLAP
    }

    /// Takes more of the continuation: what goes on to the caller, once the seam is found.
    pub(super) fn take(&mut self, text: &str) -> Option<String> {
        self.held.push_str(text);
        if self.may_repeat() || self.is_all_space() { None } else { Some(self.found()) }
    }

    /// What goes on to the caller, now that no more comes.
    pub(super) fn found(&self) -> String {
        let rest = self.held.get(self.overlap()..).unwrap_or_default();
        let spaces = rest.bytes().zip(self.space.bytes());
        let again = spaces.take_while(|(a, b)| a == b).count();
        // The two may part inside of a character.
        let again = rest.floor_char_boundary(again);
        rest.get(again..).unwrap_or_default().to_owned()
    }

    /// Whether more of the continuation could be more of the end of what was sent.
    fn may_repeat(&self) -> bool {
        let held = self.held.as_str();
        held.len() < self.tail.len() && self.starts().any(|end| end.starts_with(held))
    }

    /// Whether it is not known yet which white space comes again.
    fn is_all_space(&self) -> bool {
        let rest = self.held.get(self.overlap()..).unwrap_or_default();
        rest.len() < self.space.len() && self.space.starts_with(rest)
    }

    /// Every end of the tail that is longer than what is held, by characters.
    fn starts(&self) -> impl Iterator<Item = &str> {
        let longest = self.tail.len() - self.held.len();
        let starts = self.tail.char_indices().map(|(at, _)| at).take_while(move |at| *at < longest);
        starts.filter_map(|at| self.tail.get(at..))
    }

    /// Bytes at the beginning of what is held that are the end of what was sent; the most there are.
    fn overlap(&self) -> usize {
        let ends = self.tail.char_indices().filter_map(|(at, _)| self.tail.get(at..));
        let mut repeated = ends.take_while(|end| end.len() >= MIN_OVERLAP);
        repeated.find(|end| self.held.starts_with(end)).map_or(0, str::len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What goes on of a continuation that comes in pieces of `sizes` characters, in turn.
    fn gone_on(sent: &str, text: &str, sizes: &[usize]) -> String {
        let (mut seam, mut found, mut out) = (Seam::behind(sent), false, String::new());
        let (mut chars, mut sizes) = (text.chars().peekable(), sizes.iter().cycle());
        while chars.peek().is_some() {
            let piece: String = chars.by_ref().take(*sizes.next().unwrap_or(&1)).collect();
            if found {
                out.push_str(&piece);
            } else if let Some(rest) = seam.take(&piece) {
                out.push_str(&rest);
                found = true;
            }
        }
        if !found {
            out.push_str(&seam.found());
        }
        out
    }

    const SENT: &str = "Lighthouses stand on rocks. The oldest ";

    #[test]
    fn what_the_model_says_again_is_dropped_and_nothing_else() {
        for (text, rest) in [
            ("one is in A Coruña.", "one is in A Coruña."),
            (" one is in A Coruña.", "one is in A Coruña."),
            ("rocks. The oldest one is", "one is"),
            ("Lighthouses stand on rocks. The oldest one is", "one is"),
            // By chance now and then.
            ("oldest one is", "oldest one is"),
            ("Lighthouses stand on hills.", "Lighthouses stand on hills."),
            ("\n\nThe next", "\n\nThe next"),
            (" ", ""),
            ("", ""),
        ] {
            for sizes in [&[1][..], &[3], &[100]] {
                assert_eq!(gone_on(SENT, text, sizes), rest, "{text:?} by {sizes:?}");
            }
        }
    }

    #[test]
    fn a_repetition_is_held_until_it_ends_and_anything_else_goes_on_at_once() {
        let mut seam = Seam::behind("Lighthouses stand on rocks. The oldest");
        assert_eq!(seam.take("rocks. The"), None);
        assert_eq!(seam.take(" oldest one").as_deref(), Some(" one"));
        let mut seam = Seam::behind("Lighthouses stand on rocks. The oldest");
        assert_eq!(seam.take(" one").as_deref(), Some(" one"));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same(
            sent in "[ab ]{0,40}[ab é🚂]{16,60}", text in "[ab é🚂]{0,60}",
            sizes in prop::collection::vec(1..6_usize, 1..4),
        ) {
            prop_assert_eq!(gone_on(&sent, &text, &sizes), gone_on(&sent, &text, &[1000]));
        }

        #[test]
        fn every_repetition_that_is_long_enough_is_found(
            sent in "[a-z ]{0,80}[a-z]{20}", from in 0..100_usize, more in "[A-Z]{1,20}",
            sizes in prop::collection::vec(1..6_usize, 1..4),
        ) {
            let (_, repeated) = sent.split_at(from.min(sent.len() - MIN_OVERLAP));
            let again = gone_on(&sent, &format!("{repeated}{more}"), &sizes);
            prop_assert_eq!(again, more);
        }

        #[test]
        fn what_goes_on_is_an_end_of_the_continuation(
            sent in "[ab \n]{16,60}", text in "[ab \n]{0,60}",
        ) {
            let rest = gone_on(&sent, &text, &[2]);
            prop_assert!(text.ends_with(&rest));
            let (dropped, _) = text.split_at(text.len() - rest.len());
            let given = sent.trim_end();
            let (_, space) = sent.split_at(given.len());
            // Either white space that was there, or an end of what was given and such white space.
            let is_space = space.starts_with(dropped);
            let is_end = dropped.char_indices().map(|(at, c)| at + c.len_utf8()).any(|at| {
                let (end, again) = dropped.split_at(at);
                given.ends_with(end) && space.starts_with(again)
            });
            prop_assert!(is_space || is_end, "{dropped:?}");
        }
    }
}
