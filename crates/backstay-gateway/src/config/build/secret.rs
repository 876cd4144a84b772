//! Secrets: from the environment, or from the file with a warning.

use backstay::policy::Secret;

use super::Loading;
use crate::config::words::KeyText;

impl Loading<'_> {
    /// The text behind `written`, which stands at `path`. `None` when it is not there or cannot be
    /// sent in a header; that is noted.
    pub(super) fn text(&mut self, path: &[&str], written: &KeyText) -> Option<String> {
        let (text, source) = match written {
            KeyText::Literal(text) => (text.clone(), "this text".to_owned()),
            KeyText::Env(table) => {
                let name = table.env.as_str();
                let Some(text) = (self.outside.env)(name) else {
                    let message = format!("the environment variable `{name}` is not set");
                    self.wrong(path, "unset-variable", message, &format!("`export {name}=…`"));
                    return None;
                };
                (text, format!("the value of `{name}`"))
            }
        };
        if text.is_empty() {
            self.wrong(path, "empty-secret", format!("{source} is empty"), "");
            return None;
        }
        if !text.bytes().all(|b| (0x20..0x7f).contains(&b)) || text.trim() != text {
            let message = format!("{source} cannot be sent in a header");
            let help = "letters, digits and signs of ASCII only; look for a line break at the end";
            self.wrong(path, "bad-secret", message, help);
            return None;
        }
        Some(text)
    }

    /// The key behind `written`; a literal one is doubted.
    pub(super) fn secret(&mut self, path: &[&str], written: &KeyText) -> Option<Secret> {
        if matches!(written, KeyText::Literal(_)) {
            let help = "files are read, copied and committed: write `{ env = \"NAME\" }`";
            self.doubt(path, "literal-secret", "a secret stands in the file".into(), help);
        }
        self.text(path, written).map(Secret::new)
    }
}
