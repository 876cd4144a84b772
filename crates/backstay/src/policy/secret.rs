//! A key that is never printed.

use secrecy::{ExposeSecret, SecretString};

/// A credential. `Debug` shows its length only.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Wraps a key.
    pub fn new(key: String) -> Self {
        Self(SecretString::from(key))
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
