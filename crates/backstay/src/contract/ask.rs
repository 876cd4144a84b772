//! A request as it came in.

use std::sync::Arc;

use backstay_decide::Moment;
use backstay_wire::Dialect;
use bytes::Bytes;
use http::HeaderMap;

use crate::admit::spend::Allowance;
use crate::policy::Route;
use crate::route::DIRECT;

/// One request of a caller. `Debug` shows lengths, never the text.
#[derive(Clone)]
pub struct Ask {
    /// The wire format the caller speaks.
    pub dialect: Dialect,
    /// The body, whole.
    pub body: Bytes,
    /// The caller's headers, names in lower case.
    pub headers: HeaderMap,
    /// The query string without `?`, passed on to a provider of the same dialect.
    pub query: Option<String>,
    /// Who asks. `None`: no keys are configured.
    pub caller: Option<Arc<Caller>>,
    /// When the request's head had been read.
    pub arrived: Moment,
}

/// What a key opens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Every route, targets and `provider/model` by their names, and all that is handed through.
    #[default]
    Everything,
    /// The routes that are configured.
    Routes,
    /// These routes, by name.
    These(Vec<String>),
}

impl Reach {
    /// Whether it opens what no route stands for.
    pub fn has_direct(&self) -> bool {
        *self == Self::Everything
    }

    /// Whether it opens `route`.
    pub(crate) fn has(&self, route: &Route) -> bool {
        match self {
            Self::Everything => true,
            Self::Routes => route.name != DIRECT,
            Self::These(names) => route.name != DIRECT && names.contains(&route.name),
        }
    }
}

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The name of its key in config.
    pub name: String,
    /// Whose money it spends; empty: nobody's in particular.
    pub tenant: String,
    /// The class of its calls where they name none. `None`: the first.
    pub class: Option<String>,
    /// The classes it may name. Empty: all.
    pub classes: Vec<String>,
    /// What it may spend in a day.
    pub allowance: Allowance,
    /// Whether it may ask for faults in its own calls.
    pub dev: bool,
    /// The routes it may use.
    pub reach: Reach,
}

impl Ask {
    /// A request without headers, as a program in the same process makes it.
    pub fn new(dialect: Dialect, body: impl Into<Bytes>, arrived: Moment) -> Self {
        Self {
            dialect,
            body: body.into(),
            headers: HeaderMap::new(),
            query: None,
            caller: None,
            arrived,
        }
    }
}

impl std::fmt::Debug for Ask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (dialect, bytes) = (self.dialect.name(), self.body.len());
        write!(f, "Ask({dialect}, {bytes} bytes, {} headers)", self.headers.len())
    }
}
