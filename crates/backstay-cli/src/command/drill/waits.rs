//! Lengths of time in a drill file: written out, or by a name that has a real and a fast one.

use std::time::Duration;

use anyhow::{Context, bail};

use super::file::{Waits, WaitsOnly};

/// Which of the two lengths of a named wait counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// As providers have it.
    Real,
    /// Short enough for every build.
    Fast,
}

/// Longest wait in a file: an hour is longer than any drill.
const MAX: Duration = Duration::from_hours(1);

/// `text` with every `{NAME}` of its `[waits]` replaced.
///
/// # Errors
/// The text is not TOML, or its `[waits]` are not pairs.
pub(super) fn filled(text: &str, pace: Pace) -> anyhow::Result<String> {
    let only: WaitsOnly = toml::from_str(text)?;
    Ok(replaced(text, &only.waits, pace))
}

fn replaced(text: &str, waits: &Waits, pace: Pace) -> String {
    let mut filled = text.to_owned();
    for (name, [real, fast]) in waits {
        let length = if pace == Pace::Real { real } else { fast };
        filled = filled.replace(&format!("{{{name}}}"), length);
    }
    filled
}

/// Reads `1500ms`, `2s`, `1m 30s`.
///
/// # Errors
/// It is no length of time, is negative, or is over an hour.
pub(super) fn length(text: &str) -> anyhow::Result<Duration> {
    let wanted = || format!("`{text}` is no length of time such as 250ms, 2s or 1m 30s");
    let read: jiff::SignedDuration = text.trim().parse().with_context(wanted)?;
    let read = Duration::try_from(read).with_context(wanted)?;
    if read > MAX {
        bail!("`{text}` is longer than an hour");
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_wait_stands_for_its_real_or_its_fast_length() {
        let text = "[waits]\nlate = [\"30s\", \"600ms\"]\n[x]\ny = \"slow+wait={late} {other}\"\n";
        for (pace, length) in [(Pace::Real, "30s"), (Pace::Fast, "600ms")] {
            let filled = filled(text, pace).unwrap();
            assert!(filled.contains(&format!("y = \"slow+wait={length} {{other}}\"")), "{filled}");
        }
        assert!(filled("[waits]\nlate = \"30s\"\n", Pace::Real).is_err());
        assert!(filled("= no", Pace::Real).is_err());
    }

    #[test]
    fn lengths_are_read_and_what_is_none_is_named() {
        assert_eq!(length("250ms").unwrap(), Duration::from_millis(250));
        assert_eq!(length("1m 30s").unwrap(), Duration::from_secs(90));
        assert_eq!(length("0s").unwrap(), Duration::ZERO);
        for bad in ["", "7", "-2s", "2h", "soon"] {
            let told = length(bad).unwrap_err().to_string();
            assert!(told.contains(&format!("`{bad}`")), "{told}");
        }
    }
}
