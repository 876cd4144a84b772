//! The class of a call: what its caller asks for, as far as the caller's key allows it.

use backstay_decide::Local;
use http::HeaderName;

use super::{Ask, Caller};
use crate::fault::CallError;
use crate::policy::Queueing;

/// The header by which a caller names a class.
static PRIORITY: HeaderName = HeaderName::from_static("x-backstay-priority");

/// The place of the call's class: the one the header names, else the key's, else the first.
///
/// # Errors
/// There is no such class, or it is not for this key.
pub(super) fn settle(ask: &Ask, queue: &Queueing) -> Result<usize, CallError> {
    let caller = ask.caller.as_deref();
    let Some(wanted) = ask.headers.get(&PRIORITY) else {
        let own = caller.and_then(|caller| caller.class.as_deref());
        return Ok(own.and_then(|own| queue.class(own)).unwrap_or(0));
    };
    let wanted = wanted.to_str().unwrap_or_default().trim();
    let Some(class) = queue.class(wanted) else {
        let shown: String = wanted.chars().take(40).collect();
        let names: Vec<String> =
            queue.rules.classes.iter().map(|class| format!("`{}`", class.name)).collect();
        let note = format!("no class is named `{shown}`; the classes are {}", names.join(", "));
        return Err(CallError::local(Local::InvalidRequest, note).blaming(PRIORITY.as_str()));
    };
    match caller {
        Some(Caller { name, classes, .. })
            if !classes.is_empty() && !classes.iter().any(|class| class == wanted) =>
        {
            let note = format!(
                "the key `{name}` may not use the class `{wanted}`; it may use {}",
                classes.iter().map(|class| format!("`{class}`")).collect::<Vec<_>>().join(", ")
            );
            Err(CallError::local(Local::Forbidden, note).blaming(PRIORITY.as_str()))
        }
        _ => Ok(class),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use backstay_decide::Moment;
    use backstay_wire::Dialect;

    use super::*;

    fn class(header: Option<&str>, caller: impl Into<Option<Caller>>) -> Result<usize, CallError> {
        let mut ask = Ask::new(Dialect::OpenaiChat, "{}", Moment::ORIGIN);
        ask.caller = caller.into().map(Arc::new);
        if let Some(header) = header {
            ask.headers.insert(PRIORITY.clone(), header.parse().unwrap());
        }
        settle(&ask, &Queueing::default())
    }

    fn key(class: Option<&str>, classes: &[&str]) -> Caller {
        let classes = classes.iter().map(|class| (*class).to_owned()).collect();
        let class = class.map(str::to_owned);
        Caller { name: "job".into(), class, classes, ..Caller::default() }
    }

    #[test]
    fn the_header_wins_over_the_key_and_the_key_over_the_first_class() {
        assert_eq!(class(None, None).unwrap(), 0);
        assert_eq!(class(None, key(None, &[])).unwrap(), 0);
        assert_eq!(class(None, key(Some("batch"), &[])).unwrap(), 1);
        assert_eq!(class(Some("interactive"), key(Some("batch"), &[])).unwrap(), 0);
        assert_eq!(class(Some(" batch "), None).unwrap(), 1);
    }

    #[test]
    fn an_unknown_class_and_one_that_is_not_the_keys_are_refused_by_name() {
        let unknown = class(Some("urgent"), key(Some("batch"), &[])).unwrap_err();
        assert_eq!(unknown.code(), "invalid_request");
        assert_eq!(
            unknown.to_string(),
            "no class is named `urgent`; the classes are `interactive`, `batch`"
        );
        let promoted = class(Some("interactive"), key(Some("batch"), &["batch"])).unwrap_err();
        assert_eq!((promoted.code(), promoted.param()), ("forbidden", Some("x-backstay-priority")));
        assert!(promoted.to_string().ends_with("it may use `batch`"), "{promoted}");
        assert_eq!(class(Some("batch"), key(None, &["batch"])).unwrap(), 1);
    }
}
