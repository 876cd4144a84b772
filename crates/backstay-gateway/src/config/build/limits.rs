//! What the load on a model is kept within.

use backstay::policy::Limits;
use backstay_decide::aimd::Bounds;

use super::Loading;
use crate::config::file::ModelTable;

impl Loading<'_> {
    /// The limits of a model.
    pub(super) fn limits(&mut self, name: &str, table: &ModelTable) -> Limits {
        let places = table.places;
        self.in_range(&["models", name, "places", "floor"], places.floor, 1..=1_000_000);
        Limits {
            places: Bounds {
                floor: u32::try_from(places.floor).unwrap_or(u32::MAX),
                ceiling: table.max_concurrency,
                bytes: places.bytes,
            },
        }
    }
}
