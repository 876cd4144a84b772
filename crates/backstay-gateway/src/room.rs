//! The memory that request bodies may take together.
//!
//! Each body is bounded by `server.max_body_bytes` and connections are counted, but ten thousand
//! of them with 32 MiB each are more than a machine has. So all bodies share one amount. They pay
//! for what has come, not for what they announce: a caller who announces much and sends nothing
//! takes nothing from the others. The place is given back when the last copy of a body is gone.

use std::sync::Arc;
use std::time::Duration;

use backstay::fault::CallError;
use backstay_decide::Local;
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Bytes of all bodies together: 32 of the largest by default, or a million prompts of 1 kB.
pub(crate) const ROOM: u64 = 1 << 30;

/// How long a body waits for the others to go.
pub(crate) const WAIT: Duration = Duration::from_secs(5);

/// When a refused caller may try again.
const AGAIN: Duration = Duration::from_secs(1);

/// The room there is.
#[derive(Debug)]
pub(crate) struct Room {
    /// One permit a KiB.
    free: Arc<Semaphore>,
    wait: Duration,
}

/// The part of the room that one body has.
#[derive(Debug, Default)]
pub(crate) struct Place {
    permit: Option<OwnedSemaphorePermit>,
}

struct Placed {
    body: Bytes,
    _place: Place,
}

impl Room {
    /// Room for `bytes`, rounded down to whole KiB; a body waits for at most `wait`.
    pub(crate) fn new(bytes: u64, wait: Duration) -> Self {
        let most = usize::try_from(bytes >> 10).unwrap_or(Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))), wait }
    }

    /// Lets `place` grow to `bytes`.
    ///
    /// # Errors
    /// The other bodies left no room for it in time.
    pub(crate) async fn grow(&self, place: &mut Place, bytes: usize) -> Result<(), CallError> {
        let has = place.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let wants = bytes.div_ceil(1 << 10).saturating_sub(has);
        if wants == 0 {
            return Ok(());
        }
        let wants = u32::try_from(wants).map_err(|_| full())?;
        let more = match Arc::clone(&self.free).try_acquire_many_owned(wants) {
            Ok(more) => more,
            Err(_) => timeout(self.wait, Arc::clone(&self.free).acquire_many_owned(wants))
                .await
                .map_err(|_| full())?
                .map_err(|_| full())?,
        };
        match &mut place.permit {
            Some(permit) => permit.merge(more),
            None => place.permit = Some(more),
        }
        Ok(())
    }
}

impl Place {
    /// Ties the place to `body` and everything cut from it.
    pub(crate) fn hold(self, body: Bytes) -> Bytes {
        match self.permit {
            Some(_) => Bytes::from_owner(Placed { body, _place: self }),
            None => body,
        }
    }
}

impl AsRef<[u8]> for Placed {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

fn full() -> CallError {
    let note = "the request bodies under way take all the memory meant for them; send this one \
                again in a moment";
    CallError::local(Local::Busy, note).again_after(Some(AGAIN))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::{Place, Room};

    const WAIT: Duration = Duration::from_millis(100);

    #[tokio::test]
    async fn a_body_keeps_its_place_until_the_last_piece_of_it_is_gone() {
        let room = Room::new(64 << 10, WAIT);
        let mut place = Place::default();
        for bytes in [0, 1, 1024, 30_000, 48 << 10] {
            room.grow(&mut place, bytes).await.unwrap();
        }
        let body = place.hold(Bytes::from(vec![7; 48 << 10]));
        let piece = body.slice(10..20);
        drop(body);
        let refused = room.grow(&mut Place::default(), 17 << 10).await.unwrap_err();
        assert_eq!(refused.code(), "gateway_busy");
        assert!(refused.retry_after().is_some());
        room.grow(&mut Place::default(), 16 << 10).await.unwrap();
        drop(piece);
        room.grow(&mut Place::default(), 64 << 10).await.unwrap();
    }

    #[tokio::test]
    async fn a_body_waits_for_another_to_go() {
        let room = Room::new(64 << 10, Duration::from_secs(5));
        let mut place = Place::default();
        room.grow(&mut place, 64 << 10).await.unwrap();
        let mut next = Place::default();
        let gone = async {
            tokio::time::sleep(WAIT).await;
            drop(place);
        };
        let (grown, ()) = tokio::join!(room.grow(&mut next, 1), gone);
        grown.unwrap();
    }
}
