//! A key that is never printed.

use secrecy::{ExposeSecret, SecretString};

/// A credential. `Debug` shows its length only.
#[derive(Clone)]
pub struct Secret(SecretString);

/// What tells a key from others: it stays in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyDigest([u8; 32]);

impl Secret {
    /// Wraps a key.
    pub fn new(key: String) -> Self {
        Self(SecretString::from(key))
    }

    /// What tells it from others and does not show it.
    pub(crate) fn digest(&self) -> KeyDigest {
        KeyDigest(blake3::hash(self.expose().as_bytes()).into())
    }

    /// The key itself, to be put into a header and nowhere else.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({} bytes)", self.expose().len())
    }
}
