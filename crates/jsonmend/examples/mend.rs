//! Mends what comes on standard input and prints the document with its edits.

use std::io::{Read as _, Write as _};

use jsonmend::{Mender, Outcome, Policy, Status};

fn main() -> std::io::Result<()> {
    let mut raw = String::new();
    std::io::stdin().read_to_string(&mut raw)?;
    let mut out = std::io::stdout().lock();
    let outcome = Mender::new(Policy::standard()).mend(&raw, Status::Unknown);
    writeln!(out, "{}", outcome.name())?;
    match &outcome {
        Outcome::Ambiguous(ambiguity) => {
            writeln!(out, "{}", ambiguity.reason.name())?;
            for reading in &ambiguity.readings {
                writeln!(out, "  {}", reading.text(&raw).trim())?;
            }
        }
        Outcome::Rejected(refusal) => writeln!(out, "{refusal}")?,
        Outcome::Valid(document) | Outcome::Mended(document) | Outcome::Partial(document) => {
            writeln!(out, "{}", document.text(&raw).trim())?;
            for edit in document.edits(&raw) {
                let place = format!("{}:{}", edit.line, edit.column);
                let path = if edit.path.is_empty() { "/" } else { &edit.path };
                writeln!(
                    out,
                    "{place:>6} {} {path}: {:?} -> {:?}",
                    edit.kind, edit.before, edit.after
                )?;
            }
        }
    }
    Ok(())
}
