//! How likely a model found the choices for its tokens.

/// The choices for each token of a piece of a reply. Only where they were asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Logprobs {
    /// For the tokens of its text.
    pub text: Odds,
    /// For those of its reasoning.
    pub reasoning: Odds,
}

impl Logprobs {
    /// The same where the piece is reasoning: servers that give one list for all tokens call them those of the text.
    #[must_use]
    pub fn of_reasoning(self) -> Self {
        if self.text.is_empty() {
            self
        } else {
            Self { text: Odds::default(), reasoning: self.text }
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty()
    }
}

/// The choices for some tokens, in order: natural logarithms of their probabilities, as the provider gives them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Odds {
    /// Those of all tokens, one after the other.
    all: Vec<f32>,
    /// Where those of each token end; a token has at least one.
    ends: Vec<usize>,
}

impl Odds {
    /// Adds a token with its choices. Without any it is left out.
    pub fn push(&mut self, choices: impl IntoIterator<Item = f32>) {
        let before = self.all.len();
        self.all.extend(choices);
        if self.all.len() > before {
            self.ends.push(self.all.len());
        }
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The choices of each token; never empty.
    pub fn tokens(&self) -> impl Iterator<Item = &[f32]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).filter_map(|(from, to)| self.all.get(from..*to))
    }
}
