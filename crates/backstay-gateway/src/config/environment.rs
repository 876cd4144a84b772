//! The config of somebody who has none: the keys of the SDKs, if they are in the environment.

use std::fmt::Write as _;
use std::path::Path;

use super::{Outside, Problem, Settings, from_text};

/// A provider that can be set up by its key alone.
struct Known {
    name: &'static str,
    dialect: &'static str,
    variable: &'static str,
    base_url: &'static str,
    /// Route patterns for its models.
    patterns: &'static [&'static str],
}

const KNOWN: [Known; 2] = [
    Known {
        name: "openai",
        dialect: "openai_chat",
        variable: "OPENAI_API_KEY",
        base_url: "https://api.openai.com/v1",
        patterns: &["gpt-*", "chatgpt-*", "o1*", "o3*", "o4*"],
    },
    Known {
        name: "anthropic",
        dialect: "anthropic",
        variable: "ANTHROPIC_API_KEY",
        base_url: "https://api.anthropic.com",
        patterns: &["claude-*"],
    },
];

/// Settings from `OPENAI_API_KEY` and `ANTHROPIC_API_KEY`: one provider for each that is set, and
/// routes that send a model to the provider whose name it bears, any other to the first of them.
///
/// # Errors
/// One problem with the code `no-config` when neither is set; those of [`from_text`] when a key is
/// no key.
pub fn from_environment(outside: &Outside<'_>) -> Result<Settings, Vec<Problem>> {
    let set = |known: &&Known| (outside.env)(known.variable).is_some_and(|key| !key.is_empty());
    let text = written(KNOWN.iter().filter(set));
    if text.is_empty() {
        return Err(vec![
            Problem::error("no-config", "there is no config, and no key in the environment").help(
                "name a file with `-c FILE`, or set OPENAI_API_KEY or ANTHROPIC_API_KEY; \
                 `backstay demo` needs neither",
            ),
        ]);
    }
    from_text(&text, "(environment)", Path::new(""), outside)
}

/// The config file that says the same.
fn written<'k>(known: impl Iterator<Item = &'k Known>) -> String {
    let mut text = String::new();
    let mut rest = Some("*");
    for Known { name, dialect, variable, base_url, patterns } in known {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "[providers.{name}]\ndialect = \"{dialect}\"\nbase_url = \"{base_url}\"\n\
             api_keys = [{{ env = \"{variable}\" }}]\n\
             [models.{name}]\nprovider = \"{name}\"\nmodel = \"*\"\n"
        );
        for pattern in patterns.iter().copied().chain(rest.take()) {
            let _ = writeln!(text, "[routes.\"{pattern}\"]\ntiers = [\"{name}\"]");
        }
    }
    text
}
