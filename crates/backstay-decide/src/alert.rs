//! What an operator is told of, and how often: the same thing about the same subject once in a while,
//! with a count of what was kept back meanwhile.

use std::collections::HashMap;
use std::time::Duration;

use crate::time::Moment;

/// Most subjects kept count of; what was told longest ago makes way.
const MAX_SUBJECTS: usize = 1_000;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A reply ended in a way not known here.
    UnknownFinish,
    /// A breaker opened.
    BreakerOpened,
    /// A breaker closed.
    BreakerClosed,
    /// A key's quota or credit is spent.
    QuotaExhausted,
    /// A caller's key has spent most of what it may.
    Spend,
    /// More replies break their schema than used to.
    SchemaShift,
    /// A pinned model is not there any more.
    ModelGone,
    /// A model is about to be retired.
    ModelRetires,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::UnknownFinish,
        Self::BreakerOpened,
        Self::BreakerClosed,
        Self::QuotaExhausted,
        Self::Spend,
        Self::SchemaShift,
        Self::ModelGone,
        Self::ModelRetires,
    ];

    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownFinish => "unknown_finish",
            Self::BreakerOpened => "breaker_opened",
            Self::BreakerClosed => "breaker_closed",
            Self::QuotaExhausted => "quota_exhausted",
            Self::Spend => "spend",
            Self::SchemaShift => "schema_shift",
            Self::ModelGone => "model_gone",
            Self::ModelRetires => "model_retires",
        }
    }
}

/// Keeps repeats back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repeats {
    told: HashMap<(Kind, String), Told>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Told {
    at: Moment,
    kept_back: u32,
}

impl Repeats {
    /// Something happened: how many of its kind were kept back since it was last told, if it is to be
    /// told now. `None`: it was told less than `every` ago, and is kept back.
    pub fn note(&mut self, kind: Kind, subject: &str, now: Moment, every: Duration) -> Option<u32> {
        let key = (kind, subject.to_owned());
        if let Some(told) = self.told.get_mut(&key) {
            if now.since(told.at) < every {
                told.kept_back = told.kept_back.saturating_add(1);
                return None;
            }
            let kept_back = told.kept_back;
            *told = Told { at: now, kept_back: 0 };
            return Some(kept_back);
        }
        if self.told.len() >= MAX_SUBJECTS {
            self.forget(now, every);
        }
        self.told.insert(key, Told { at: now, kept_back: 0 });
        Some(0)
    }

    /// Forgets what may be told again anyway, else what was told longest ago.
    fn forget(&mut self, now: Moment, every: Duration) {
        self.told.retain(|_, told| now.since(told.at) < every);
        if self.told.len() < MAX_SUBJECTS {
            return;
        }
        let oldest = self.told.iter().min_by_key(|(_, told)| told.at).map(|(key, _)| key.clone());
        if let Some(oldest) = oldest {
            self.told.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_mins(15);

    const fn at(seconds: u64) -> Moment {
        Moment::at(Duration::from_secs(seconds))
    }

    #[test]
    fn the_same_is_told_once_a_while_with_a_count_of_what_was_kept_back() {
        let mut repeats = Repeats::default();
        let mut note = |kind, subject, second| repeats.note(kind, subject, at(second), EVERY);
        assert_eq!(note(Kind::BreakerOpened, "a", 0), Some(0));
        assert_eq!(note(Kind::BreakerOpened, "a", 1), None);
        assert_eq!(note(Kind::BreakerOpened, "a", 899), None);
        assert_eq!(note(Kind::BreakerOpened, "b", 1), Some(0), "another subject");
        assert_eq!(note(Kind::BreakerClosed, "a", 1), Some(0), "another kind");
        assert_eq!(note(Kind::BreakerOpened, "a", 900), Some(2));
        assert_eq!(note(Kind::BreakerOpened, "a", 1_000), None);
        assert_eq!(note(Kind::BreakerOpened, "a", 1_800), Some(1));
        assert_eq!(note(Kind::BreakerOpened, "a", 9_000), Some(0));
    }

    #[test]
    fn with_no_while_everything_is_told() {
        let mut repeats = Repeats::default();
        for _ in 0..3 {
            assert_eq!(repeats.note(Kind::Spend, "a", at(5), Duration::ZERO), Some(0));
        }
    }

    #[test]
    fn subjects_are_bounded_and_the_oldest_makes_way() {
        let mut repeats = Repeats::default();
        for number in 0..3_000 {
            let subject = number.to_string();
            assert_eq!(repeats.note(Kind::Spend, &subject, at(number / 100), EVERY), Some(0));
            assert!(repeats.told.len() <= MAX_SUBJECTS);
        }
        assert_eq!(repeats.note(Kind::Spend, "2999", at(30), EVERY), None, "a young one is kept");
    }

    #[test]
    fn where_there_is_no_room_what_may_be_told_again_makes_way_and_nothing_else() {
        let mut repeats = Repeats::default();
        for number in 0..MAX_SUBJECTS {
            let second = if number < 500 { 0 } else { 100 };
            repeats.note(Kind::Spend, &number.to_string(), at(second), EVERY);
        }
        let later = at(0).plus(EVERY);
        assert_eq!(repeats.note(Kind::Spend, "new", later, EVERY), Some(0));
        assert_eq!(repeats.told.len(), MAX_SUBJECTS - 500 + 1);
        for number in 500..MAX_SUBJECTS {
            assert_eq!(repeats.note(Kind::Spend, &number.to_string(), later, EVERY), None);
        }
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<_> = Kind::ALL.map(Kind::name).into();
        assert_eq!(names.len(), Kind::ALL.len());
    }
}
