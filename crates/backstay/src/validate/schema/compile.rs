//! Compiles a schema, offline and with patterns that run in linear time.

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{
    PatternOptions, ReferencingError, Registry, Retrieve, Uri, ValidationError, Validator,
};
use serde_json::Value;

use super::super::{clipped, deep};
use super::breach::shown;
use super::documents::Documents;
use super::fault::SchemaFault;
use super::format::{self, Formats};
use super::node::Metered;

/// The largest program of one pattern, in bytes, and the largest of its caches.
const PATTERN_BYTES: usize = 256 * 1024;

/// Compiles on a thread with a deep stack.
pub(super) fn compiled(
    source: &Value,
    documents: &Documents,
    formats: Formats,
) -> Result<Validator<Metered>, SchemaFault> {
    deep(|| on_this_thread(source, documents, formats)).ok_or(SchemaFault::Failed)?
}

fn on_this_thread(
    source: &Value,
    documents: &Documents,
    formats: Formats,
) -> Result<Validator<Metered>, SchemaFault> {
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    let options = jsonschema::options_for::<Metered>().offline().with_pattern_options(patterns);
    let noted = format::NOTED.iter();
    let options = noted.fold(options, |options, name| options.with_format(*name, |_| true));
    let options = options.with_format("uuid", format::is_uuid);
    let options = options.should_validate_formats(formats == Formats::Checked);
    if documents.is_empty() {
        return options.build(source).map_err(|error| fault(&error));
    }
    let registry = Registry::new().retriever(Nothing).extend(documents.each());
    let registry = registry.and_then(jsonschema::RegistryBuilder::prepare);
    let registry = registry.map_err(|error| reference_fault(&error))?;
    options.with_registry(&registry).build(source).map_err(|error| fault(&error))
}

/// Retrieves nothing.
struct Nothing;

impl Retrieve for Nothing {
    fn retrieve(
        &self,
        uri: &Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("{uri} is not among the documents").into())
    }
}

fn fault(error: &ValidationError<'_>) -> SchemaFault {
    if let Kind::Referencing(reference) = error.kind() {
        return reference_fault(reference);
    }
    let problem = match error.kind() {
        Kind::Format { format } if format == "regex" => format!(
            "{} is no pattern that can be used; it must run in linear time, without look-around and back-references, and stay small",
            shown(error.instance())
        ),
        _ => clipped(&error.to_string(), 200),
    };
    SchemaFault::Invalid { pointer: clipped(error.instance_path().as_str(), 120), problem }
}

fn reference_fault(reference: &ReferencingError) -> SchemaFault {
    match reference {
        ReferencingError::Unretrievable { uri, .. } => {
            SchemaFault::ForeignReference { reference: clipped(uri, 200) }
        }
        ReferencingError::UnknownSpecification { specification } => {
            SchemaFault::UnknownDraft { uri: clipped(specification, 200) }
        }
        other => SchemaFault::BrokenReference { problem: clipped(&other.to_string(), 200) },
    }
}
