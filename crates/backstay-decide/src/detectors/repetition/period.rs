//! The period of a text's end: exact, or but for a few tokens.

use super::Care;
use super::ring::{Mark, PHRASE, Ring, View};

/// An end that repeats itself without a difference.
///
/// The distance to where the last phrase stood before is the smallest period there can be; it is kept for
/// as long as every token is the one that stands a period before, so that a token costs one comparison.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exact {
    /// 0: none.
    period: usize,
    /// Tokens in a row that were as expected.
    run: usize,
    /// Tokens of a run at which it is looked at again.
    next: usize,
}

/// Tokens of a run that are counted when it is first seen: more than the ring keeps before it looks phrases
/// up.
const AT_ONCE: usize = 64;

/// A run that is long enough to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) period: usize,
    /// Tokens of all copies, the first one included.
    pub(super) tokens: usize,
}

impl Exact {
    /// Takes note of the ring's last token, whose phrase stood `before` tokens back. Returns a run that is
    /// to be [judged](Self::wait_for).
    pub(super) fn note(&mut self, ring: &Ring, before: Option<usize>) -> Option<Run> {
        if self.period != 0 && ring.same(View::Exact, 0, self.period) {
            self.run += 1;
        } else {
            *self = Self::default();
            let period = before?;
            let run = (PHRASE..AT_ONCE)
                .find(|back| {
                    back + period >= ring.reach() || !ring.same(View::Exact, *back, period)
                })
                .unwrap_or(AT_ONCE);
            *self = Self { period, run, next: Strictness::Plain.tokens(period) };
        }
        let tokens = self.run + self.period;
        (tokens >= self.next).then_some(Run { period: self.period, tokens })
    }

    /// Does not tell of this run again before it has so many tokens.
    pub(super) fn wait_for(&mut self, tokens: usize) {
        self.next = tokens;
    }
}

/// How much of a repetition it takes, by what is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// Words.
    Plain,
    /// Words in fenced code, in the rows of a table, in the arguments of a call or without blanks between
    /// them; different numbers in turn.
    Careful,
    /// Signs only, or digits without an end.
    Bare,
    /// One letter.
    Letter,
    /// The same number again and again, or encoded bytes: people ask for that.
    Uniform,
}

impl Strictness {
    /// Tokens of all copies from which on a `period` is a loop.
    ///
    /// Short periods need many copies, since "ha ha ha" is text; four copies of anything long are not.
    pub(super) fn tokens(self, period: usize) -> usize {
        let copies = match period {
            0..=8 => 24,
            9..=64 => 8,
            _ => 4,
        };
        match self {
            Self::Plain => (period * copies).max(128),
            Self::Careful => (period * copies * 2).max(256),
            Self::Bare => (period * copies * 2).max(512),
            // 1024: 6 kB of the same byte, encoded.
            Self::Letter => (period * copies * 2).max(1024),
            // 4096: an array of two thousand zeros is asked for now and then, a longer one is not read.
            Self::Uniform => (period * copies * 2).max(4096),
        }
    }

    /// How strictly the last `period` tokens are to be taken.
    pub(super) fn of(ring: &Ring, period: usize, care: Care) -> Self {
        let mut seen = Seen::default();
        // Once more round, so that a number that the period's start cuts is seen whole.
        for back in (0..period * 2).rev() {
            let token = ring.back(back);
            seen.note(token.mark(), token.value());
        }
        match () {
            () if seen.words > 0 => {
                // A period with a fence in it is more than code.
                let code = care == Care::Values && seen.fences == 0;
                if code || seen.is_table() { Self::Careful } else { Self::Plain }
            }
            () if seen.codes + seen.sames > 0 && seen.numbers > 0 => Self::Uniform,
            () if seen.codes > 0 => Self::Careful,
            () if seen.sames > 0 => Self::Letter,
            () if seen.values_differ => Self::Careful,
            () if seen.numbers > 0 && seen.others > 0 => Self::Uniform,
            () => Self::Bare,
        }
    }
}

/// What a period is made of.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    words: usize,
    codes: usize,
    sames: usize,
    fences: usize,
    numbers: usize,
    /// Neither words nor codes nor digits.
    others: usize,
    pipes: usize,
    lines: usize,
    /// The number under way.
    value: Option<u32>,
    /// The last number.
    last: Option<u32>,
    /// The first number may be cut, so the second one is the first to be compared with.
    whole: bool,
    values_differ: bool,
}

impl Seen {
    fn note(&mut self, mark: Mark, hash: u32) {
        match mark {
            Mark::Number | Mark::Digits => {
                self.numbers += 1;
                if mark == Mark::Number {
                    self.end_number();
                    self.others += 1;
                }
                self.go_on(hash);
                return;
            }
            Mark::Dot if self.value.is_some() => {
                self.others += 1;
                self.go_on(hash);
                return;
            }
            Mark::Word => self.words += 1,
            Mark::Code => self.codes += 1,
            Mark::Same => self.sames += 1,
            Mark::Fence => self.fences += 1,
            Mark::Pipe => self.pipes += 1,
            Mark::Line => self.lines += 1,
            Mark::Item | Mark::Blank | Mark::Sign | Mark::Dot => {}
        }
        self.others += 1;
        self.end_number();
    }

    fn go_on(&mut self, hash: u32) {
        self.value = Some(self.value.unwrap_or(0).wrapping_mul(31).wrapping_add(hash));
    }

    fn end_number(&mut self) {
        let Some(value) = self.value.take() else { return };
        if self.whole {
            self.values_differ |= self.last.is_some_and(|last| last != value);
            self.last = Some(value);
        }
        self.whole = true;
    }

    fn is_table(&self) -> bool {
        self.lines > 0 && self.pipes >= 2 * self.lines
    }
}

/// An end that repeats itself but for a few tokens, or for its numbers.
///
/// Every token that is as expected counts one, every place that is not takes some away; a period that
/// changes by little, since a token was added or left out, goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Near {
    period: usize,
    score: u32,
    /// Tokens since the last one that was as expected.
    missed: u32,
}

/// What a place that is not as expected takes away: at more than one place in seven it does not grow.
const MISS: u32 = 6;
/// Further tokens of the same place are forgiven, for as long as a new phrase takes to be known.
const FORGIVEN: u32 = 8;
/// Tokens that are not as expected before a quite different period is followed.
const PATIENCE: u32 = 4;
/// How far a period may change.
const DRIFT: usize = 4;
/// The score is told from here on; of long periods only after two copies.
const TOLD: u32 = 256;
/// It grows no further: what was long ago must not outweigh a text that goes on well.
const TOP: u32 = 4096;

impl Near {
    /// Takes note of the ring's last token, whose phrase stood `before` tokens back with numbers alike.
    pub(super) fn note(&mut self, ring: &Ring, before: Option<usize>) {
        if self.period != 0 && ring.same(View::Masked, 0, self.period) {
            self.score = (self.score + 1).min(TOP);
            self.missed = 0;
            return;
        }
        self.missed += 1;
        if self.missed == 1 {
            self.score = self.score.saturating_sub(MISS);
        } else if self.missed > FORGIVEN {
            self.score = self.score.saturating_sub(1);
        }
        let Some(before) = before else { return };
        if before.abs_diff(self.period) > DRIFT {
            // One changed word does not end a period: the next one may be as expected again.
            if self.missed < PATIENCE && self.score > 0 {
                return;
            }
            self.score = 0;
        }
        self.period = before;
        self.missed = 0;
    }

    /// The period and the score, where it is high enough to be told.
    pub(super) fn told(&self) -> Option<(usize, u32)> {
        let asked = TOLD.max(u32::try_from(self.period * 2).unwrap_or(TOP));
        (self.score >= asked.min(TOP)).then_some((self.period, self.score))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::Kept;
    use super::*;

    /// Runs that are told of `tokens`, and after how many of them.
    fn runs(tokens: impl IntoIterator<Item = Kept>) -> Vec<(usize, Run)> {
        let (mut ring, mut exact) = (Ring::default(), Exact::default());
        let mut runs = Vec::new();
        for token in tokens {
            ring.push(token);
            let before = ring.look_up(View::Exact);
            if let Some(run) = exact.note(&ring, before) {
                exact.wait_for(run.tokens * 2);
                runs.push((ring.count(), run));
            }
        }
        runs
    }

    #[test]
    fn a_run_is_told_as_soon_as_its_copies_are_there_whatever_stood_before() {
        let rows = [
            (1, 128),
            (5, 128),
            (6, 144),
            (8, 192),
            (9, 128),
            (17, 136),
            (64, 512),
            (65, 260),
            (300, 1200),
        ];
        for (period, tokens) in rows {
            for before in [0, 1, 40, 300, 5000] {
                let unlike = (0..before).map(|at| Kept::word(10_000 + at));
                let alike = (0..tokens * 2).map(|at| Kept::word(at % period));
                let told = runs(unlike.chain(alike));
                let run = |tokens| (before + tokens, Run { period, tokens });
                assert_eq!(told, [run(tokens), run(tokens * 2)], "{period} after {before}");
            }
        }
    }

    #[test]
    fn one_other_token_ends_a_run() {
        let almost = |period: usize, other: usize| {
            runs(
                (0..other * 2)
                    .map(move |at| Kept::word(if at == other { 99 } else { at % period })),
            )
        };
        assert_eq!(almost(10, 127), []);
        assert_eq!(almost(10, 128), [(128, Run { period: 10, tokens: 128 })]);
    }

    #[test]
    fn the_copies_asked_fall_with_the_period_and_rise_with_the_strictness() {
        use Strictness::{Bare, Careful, Letter, Plain, Uniform};
        let rows = [
            (
                Plain,
                [(0, 128), (5, 128), (6, 144), (8, 192), (9, 128), (17, 136), (64, 512), (65, 260)],
            ),
            (
                Careful,
                [
                    (1, 256),
                    (5, 256),
                    (6, 288),
                    (8, 384),
                    (9, 256),
                    (17, 272),
                    (64, 1024),
                    (65, 520),
                ],
            ),
            (
                Bare,
                [
                    (1, 512),
                    (8, 512),
                    (9, 512),
                    (32, 512),
                    (33, 528),
                    (64, 1024),
                    (65, 520),
                    (100, 800),
                ],
            ),
            (
                Letter,
                [
                    (1, 1024),
                    (8, 1024),
                    (64, 1024),
                    (65, 1024),
                    (128, 1024),
                    (129, 1032),
                    (500, 4000),
                    (9, 1024),
                ],
            ),
            (
                Uniform,
                [
                    (1, 4096),
                    (8, 4096),
                    (64, 4096),
                    (65, 4096),
                    (512, 4096),
                    (513, 4104),
                    (9, 4096),
                    (600, 4800),
                ],
            ),
        ];
        for (strictness, tokens) in rows {
            for (period, want) in tokens {
                assert_eq!(strictness.tokens(period), want, "{strictness:?}, {period}");
            }
        }
    }

    /// How strictly `unit` is taken, where it stands again and again.
    fn strictness(unit: &str, care: Care) -> Strictness {
        let tokens = |copies| Ring::of(&unit.repeat(copies)).count();
        // Letters without a blank are bytes only once they are many.
        let (long, short) = (40, 20);
        let period = (tokens(long) - tokens(short)) / (long - short);
        Strictness::of(&Ring::of(&unit.repeat(long)), period, care)
    }

    #[test]
    fn what_is_repeated_says_how_strictly_it_is_taken() {
        use Strictness::{Bare, Careful, Letter, Plain, Uniform};
        let rows = [
            ("some words ", Plain),
            ("word 1, ", Plain),
            ("a | b\n", Plain),
            ("| a\n", Plain),
            ("a | b | c\n", Careful),
            ("| a | b |\n", Careful),
            ("| a | b | c | d\n\n\n", Plain),
            ("fe, ", Careful),
            ("00 fe, ", Uniform),
            ("ABCDEFGH", Careful),
            ("AAAAAAAA", Letter),
            ("0, ", Uniform),
            ("[0, 0], ", Uniform),
            ("0.5,", Uniform),
            ("null, ", Uniform),
            (" 12", Uniform),
            ("1.", Uniform),
            ("5, . ", Uniform),
            ("1, 2, ", Careful),
            ("0.5, 0.6, ", Careful),
            ("0.55, .55, ", Careful),
            ("1234 1235 ", Careful),
            ("true, null, ", Careful),
            ("000", Bare),
            ("!?", Bare),
            ("- ", Bare),
            ("\n", Bare),
        ];
        for (unit, want) in rows {
            assert_eq!(strictness(unit, Care::Prose), want, "{unit:?}");
        }
        assert_eq!(strictness("some words\n", Care::Values), Careful);
        assert_eq!(strictness("words\n```\n", Care::Values), Plain, "a fence is more than code");
        assert_eq!(strictness("0, ", Care::Values), Uniform);
    }

    /// Period and score after each of `tokens`, and whether they are told.
    fn near(tokens: impl IntoIterator<Item = Kept>) -> Vec<(usize, u32, bool)> {
        let (mut ring, mut near) = (Ring::default(), Near::default());
        let note = |token| {
            ring.push(token);
            let before = ring.look_up(View::Masked);
            near.note(&ring, before);
            assert!(near.told().is_none_or(|told| told == (near.period, near.score)));
            (near.period, near.score, near.told().is_some())
        };
        tokens.into_iter().map(note).collect()
    }

    /// Copies of `period` words, the tokens at `other` being none of them.
    fn copies(period: usize, count: usize, other: impl Fn(usize) -> bool) -> Vec<Kept> {
        let word = |at| if other(at) { Kept::word(5000 + at) } else { Kept::word(at % period) };
        (0..count).map(word).collect()
    }

    #[test]
    fn every_token_that_is_as_expected_counts_one_up_to_a_bound() {
        let scores = near(copies(40, 9000, |_| false));
        // The first phrase is known again at token 46.
        assert_eq!(
            [scores[44], scores[45], scores[46]],
            [(0, 0, false), (40, 0, false), (40, 1, false)]
        );
        assert_eq!([scores[300], scores[301]], [(40, 255, false), (40, 256, true)]);
        assert_eq!([scores[4141], scores[8999]], [(40, 4096, true); 2]);
    }

    #[test]
    fn a_long_period_is_told_after_two_copies_and_the_longest_at_the_bound() {
        for (period, asked) in [(128, 256), (129, 258), (1000, 2000), (2048, 4096)] {
            let scores = near(copies(period, period * 4, |_| false));
            let first = scores.iter().find(|(.., told)| *told);
            assert_eq!(first, Some(&(period, asked, true)));
        }
    }

    #[test]
    fn a_place_that_is_not_as_expected_takes_six_and_a_long_one_more() {
        let one = near(copies(40, 200, |at| at == 100));
        assert_eq!(
            [one[99], one[100], one[101]],
            [(40, 54, false), (40, 48, false), (40, 49, false)]
        );
        let many = near(copies(40, 200, |at| (100..112).contains(&at)));
        let scores: Vec<u32> = many[99..114].iter().map(|(_, score, _)| *score).collect();
        assert_eq!(scores, [54, 48, 48, 48, 48, 48, 48, 48, 48, 47, 46, 45, 44, 45, 46]);
        // Among the first tokens nothing can be taken.
        assert_eq!(near(copies(40, 60, |at| at == 48))[48], (40, 0, false));
    }

    #[test]
    fn another_period_is_followed_after_four_tokens_that_are_not_as_expected() {
        // The same other words stand in the fourth copy and in the ninth, 200 tokens later.
        let scores = |others: std::ops::Range<usize>| {
            let token = |at: usize| {
                let is_other = [120, 320].contains(&(at / 40 * 40)) && others.contains(&(at % 40));
                Kept::word(if is_other { 1000 + at % 40 } else { at % 40 })
            };
            near((0..400).map(token))
        };
        let [three, four] = [scores(20..23), scores(20..24)];
        let (before, ..) = three[339];
        assert_eq!([before, three[340].0, three[342].0, three[343].0], [40; 4]);
        assert!(three[343].1 > 200, "{:?}", three[343]);
        assert_eq!([four[342].0, four[343].0], [40, 200]);
        assert_eq!((four[342].1 > 100, four[343].1), (true, 0));
    }

    #[test]
    fn a_period_without_a_score_gives_way_at_once() {
        // The second copy goes on as a beginning from before did, one token after its period is known.
        let beginning = [0, 1, 2, 3, 4, 5, 77].map(Kept::word);
        let between = (0..40).map(|at| Kept::word(700 + at));
        let copy = (0..40).map(Kept::word);
        let scores = near(beginning.into_iter().chain(between).chain(copy).chain(beginning));
        assert_eq!(scores[scores.len() - 2..], [(40, 0, false), (87, 0, false)]);
    }

    #[test]
    fn one_place_in_eight_still_grows_and_one_in_six_does_not() {
        let told = |every| near(copies(80, 4000, |at| at % every == 0))[3999].2;
        assert!(told(8) && !told(6));
    }

    #[test]
    fn numbers_that_change_are_as_expected() {
        let token =
            |at: usize| if at.is_multiple_of(10) { Kept::number(at) } else { Kept::word(at % 10) };
        let scores = near((0..400).map(token));
        assert!(scores[399].1 > 350, "{:?}", scores[399]);
    }

    #[test]
    fn a_token_more_or_less_changes_a_period_and_keeps_the_score() {
        for cut in [44_usize, 36, 45, 35] {
            // One copy is longer or shorter than the others.
            let token = |at: usize| {
                let at = if at < 200 {
                    at % 40
                } else if at < 200 + cut {
                    at - 200
                } else {
                    (at - 200 - cut) % 40
                };
                Kept::word(at)
            };
            let scores = near((0..320).map(token));
            let kept = scores[190..270].iter().all(|(_, score, _)| *score > 100);
            assert_eq!(kept, cut.abs_diff(40) <= 4, "{cut}: {:?}", &scores[190..270]);
        }
    }
}
