//! Headers and addresses of requests to providers.

use std::sync::OnceLock;

use backstay_decide::Local;
use backstay_wire::Dialect;
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use crate::contract::Contract;
use crate::fault::CallError;
use crate::policy::{CredentialSource, Provider, Secret, Target};

/// Headers of the caller that say what it wants of the model and are passed on within a dialect.
/// Hop headers, retry counts and credentials never are.
static PASSED_ON: [HeaderName; 5] = [
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("openai-beta"),
    HeaderName::from_static("x-client-request-id"),
    HeaderName::from_static("accept-language"),
];

/// The version of the Messages API sent when the caller names none.
const ANTHROPIC_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// The caller's headers that are passed on to a provider of its own dialect, each line of each:
/// betas may be named in one line or in several.
pub(crate) fn passed_on(headers: &HeaderMap) -> impl Iterator<Item = (HeaderName, &HeaderValue)> {
    let lines =
        |name| headers.get_all(name).iter().map(move |value| (HeaderName::clone(name), value));
    PASSED_ON.iter().flat_map(lines)
}

/// Where the request goes. An address without a query is built once and kept in `kept`.
pub(super) fn uri(
    contract: &Contract,
    target: &Target,
    kept: Option<&OnceLock<Uri>>,
) -> Result<Uri, CallError> {
    let dialect = target.provider.dialect;
    let query = contract.ask.query.as_deref().filter(|_| dialect == contract.ask.dialect);
    if query.is_none()
        && let Some(uri) = kept.and_then(OnceLock::get)
    {
        return Ok(uri.clone());
    }
    let uri = join(&target.provider, dialect.path(), query)?;
    if let Some(kept) = kept.filter(|_| query.is_none()) {
        let _ = kept.set(uri.clone());
    }
    Ok(uri)
}

/// A provider's address with `path` and `query` behind it.
pub(crate) fn join(provider: &Provider, path: &str, query: Option<&str>) -> Result<Uri, CallError> {
    let base = &provider.base_url;
    // A base URL of a Messages API is written with and without `/v1` in the wild.
    let prefix = base.path().trim_end_matches('/');
    let versioned = path.strip_prefix("/v1").filter(|_| prefix.ends_with("/v1"));
    let path = versioned.unwrap_or(path);
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let mut parts = base.clone().into_parts();
    parts.path_and_query = format!("{prefix}{path}{query}").parse().ok();
    Uri::from_parts(parts).map_err(|_| {
        let note = format!("the address of provider `{}` cannot be built", provider.name);
        CallError::local(Local::Internal, note)
    })
}

/// All headers for `target`.
pub(super) fn all(
    contract: &Contract,
    target: &Target,
    key: usize,
) -> Result<HeaderMap, CallError> {
    let provider = &target.provider;
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("backstay/", env!("CARGO_PKG_VERSION"))),
    );
    if provider.dialect == contract.ask.dialect {
        headers.extend(passed_on(&contract.ask.headers).map(|(k, v)| (k, v.clone())));
    }
    authorize(&mut headers, provider, callers_own(contract, provider), key)?;
    Ok(headers)
}

/// The headers whose credentials may go to `provider`. `None`: not one of them is its affair.
///
/// A key for one company's API must not reach another's when the call fails over, and the dialect
/// is what tells the two apart. A caller let in by a key of this gateway has sent that key.
fn callers_own<'a>(contract: &'a Contract, provider: &Provider) -> Option<&'a HeaderMap> {
    let own = contract.ask.caller.is_none() && provider.dialect == contract.ask.dialect;
    own.then_some(&contract.ask.headers)
}

/// Adds the credentials, the version header and the provider's own headers.
///
/// `caller` are the headers with credentials meant for this provider, used only where it takes the
/// caller's; `None`: the caller has none for it, and the request goes out without.
pub(crate) fn authorize(
    headers: &mut HeaderMap,
    provider: &Provider,
    caller: Option<&HeaderMap>,
    key: usize,
) -> Result<(), CallError> {
    if provider.dialect == Dialect::Anthropic {
        headers.entry("anthropic-version").or_insert(ANTHROPIC_VERSION);
    }
    match &provider.credentials {
        CredentialSource::Nobody => {}
        CredentialSource::Own(keys) => {
            if let Some(secret) = keys.get(key % keys.len().max(1)) {
                let (name, value) = credential(provider, secret)?;
                headers.insert(name, value);
            }
        }
        CredentialSource::Caller => {
            for name in [AUTHORIZATION, HeaderName::from_static("x-api-key")] {
                if let Some(value) = caller.and_then(|caller| caller.get(&name)) {
                    let mut value = value.clone();
                    value.set_sensitive(true);
                    headers.insert(name, value);
                }
            }
        }
    }
    for (name, value) in &provider.headers {
        headers.insert(name.clone(), value.clone());
    }
    Ok(())
}

fn credential(provider: &Provider, key: &Secret) -> Result<(HeaderName, HeaderValue), CallError> {
    let (name, text) = match provider.dialect {
        Dialect::OpenaiChat => (AUTHORIZATION, format!("Bearer {}", key.expose())),
        Dialect::Anthropic => (HeaderName::from_static("x-api-key"), key.expose().to_owned()),
    };
    let mut value = HeaderValue::from_str(&text).map_err(|_| {
        let note =
            format!("the key of provider `{}` has characters a header cannot", provider.name);
        CallError::local(Local::Internal, note)
    })?;
    value.set_sensitive(true);
    Ok((name, value))
}
