//! Who is calling: the keys of `[keys.NAME]`, sent as `Authorization: Bearer` or `x-api-key`.
//!
//! Both schemes are accepted on every path: current Anthropic SDKs send a bearer token, older ones
//! `x-api-key`. Tokens are kept as digests and compared in constant time, all of them each time.

use std::sync::Arc;

use backstay::admit::spend::Allowance;
use backstay::contract::Caller;
use backstay::policy::Secret;
use backstay_decide::Local;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::config::CallerKey;
use backstay::fault::CallError;

/// The callers that are let in.
#[derive(Debug, Default)]
pub struct Callers {
    known: Vec<([u8; 32], Arc<Caller>)>,
    /// The operator's key.
    admin: Option<[u8; 32]>,
}

impl Callers {
    /// Those with the given keys. Empty: everybody is let in, without a name.
    pub fn new(keys: &[CallerKey]) -> Self {
        let known = keys.iter().map(|key| {
            let caller = Caller {
                name: key.name.clone(),
                tenant: key.tenant.clone(),
                class: key.class.clone(),
                classes: key.classes.clone(),
                allowance: key.allowance,
                dev: key.dev,
                reach: key.reach.clone(),
            };
            (digest(key.token.expose()), Arc::new(caller))
        });
        Self { known: known.collect(), admin: None }
    }

    /// And operators, by their key. Without one nobody is an operator.
    #[must_use]
    pub fn with_admin(mut self, key: Option<&Secret>) -> Self {
        self.admin = key.map(|key| digest(key.expose()));
        self
    }

    /// The name of every caller whose spending is bounded, and what he may spend a day.
    pub fn limited(&self) -> impl Iterator<Item = (&str, Allowance)> {
        let callers = self.known.iter().map(|(_, caller)| (caller.name.as_str(), caller.allowance));
        callers.filter(|(_, allowed)| allowed.is_limited())
    }

    /// Whether there is an admin API.
    pub fn has_admin(&self) -> bool {
        self.admin.is_some()
    }

    /// Lets an operator in.
    ///
    /// # Errors
    /// No key, another one, or none is configured.
    pub fn admit_operator(&self, headers: &HeaderMap) -> Result<(), CallError> {
        let refused = |note| Err(CallError::local(Local::Unauthorized, note));
        let Some(sent) = token(headers) else {
            return refused(
                "no key was sent; send the admin key as `Authorization: Bearer` or `x-api-key`",
            );
        };
        match &self.admin {
            Some(key) if bool::from(key.ct_eq(&digest(sent))) => Ok(()),
            Some(_) | None => refused("the key that was sent is not server.admin_key"),
        }
    }

    /// The caller with the token in `headers`.
    ///
    /// # Errors
    /// No token, or one that is not known.
    pub fn admit(&self, headers: &HeaderMap) -> Result<Option<Arc<Caller>>, CallError> {
        if self.known.is_empty() {
            return Ok(None);
        }
        let Some(token) = token(headers) else {
            let note = "no key was sent; send one of the gateway's keys as `Authorization: Bearer` \
                        or `x-api-key`";
            return Err(CallError::local(Local::Unauthorized, note));
        };
        let sent = digest(token);
        let mut found = None;
        for (known, caller) in &self.known {
            if bool::from(known.ct_eq(&sent)) {
                found = Some(Arc::clone(caller));
            }
        }
        found.map(Some).ok_or_else(|| {
            let note =
                "the key that was sent is not one of the gateway's; see [keys] in its config";
            CallError::local(Local::Unauthorized, note)
        })
    }
}

fn token(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    bearer.or_else(|| headers.get("x-api-key").and_then(|value| value.to_str().ok()))
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use backstay::admit::spend::Allowance;
    use backstay::contract::Reach;
    use backstay::policy::Secret;
    use http::HeaderMap;

    use super::Callers;
    use crate::config::CallerKey;

    fn callers() -> Callers {
        let key = |name: &str, token: &str, tenant: &str| CallerKey {
            name: name.into(),
            token: Secret::new(token.into()),
            tenant: tenant.into(),
            class: None,
            classes: Vec::new(),
            allowance: Allowance::default(),
            dev: false,
            reach: Reach::default(),
        };
        Callers::new(&[key("app", "s3cret", "t"), key("job", "other", "")])
    }

    fn with(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    }

    #[test]
    fn both_schemes_let_the_same_caller_in() {
        for headers in [
            with("authorization", "Bearer s3cret"),
            with("authorization", "bearer s3cret"),
            with("x-api-key", "s3cret"),
        ] {
            assert_eq!(callers().admit(&headers).unwrap().unwrap().name, "app");
        }
        assert_eq!(callers().admit(&with("x-api-key", "other")).unwrap().unwrap().name, "job");
    }

    #[test]
    fn no_key_and_a_wrong_key_are_told_apart_and_both_refused() {
        let none = callers().admit(&HeaderMap::new()).unwrap_err();
        let wrong = callers().admit(&with("x-api-key", "s3cre")).unwrap_err();
        assert_eq!((none.code(), wrong.code()), ("unauthorized", "unauthorized"));
        assert!(none.to_string().contains("no key was sent"));
        assert!(wrong.to_string().contains("not one of the gateway's"));
    }

    #[test]
    fn only_the_admin_key_makes_an_operator_and_without_one_nothing_does() {
        let key = Secret::new("adm1n".into());
        let with_key = callers().with_admin(Some(&key));
        for headers in [with("authorization", "Bearer adm1n"), with("x-api-key", "adm1n")] {
            assert!(with_key.admit_operator(&headers).is_ok());
            assert_eq!(with_key.admit(&headers).unwrap_err().code(), "unauthorized");
            assert!(callers().admit_operator(&headers).is_err());
        }
        for headers in [HeaderMap::new(), with("x-api-key", "s3cret"), with("x-api-key", "")] {
            assert_eq!(with_key.admit_operator(&headers).unwrap_err().code(), "unauthorized");
        }
        assert!(with_key.has_admin() && !callers().has_admin());
    }

    #[test]
    fn without_keys_everybody_is_let_in_without_a_name() {
        assert!(Callers::default().admit(&HeaderMap::new()).unwrap().is_none());
    }
}
