//! Who finishes a request first. Pure arithmetic: measurements in, a time out.
//!
//! A driver that works beside the caller finishes a request after what it has already accepted, the
//! hop there and back included (which the cost of a lone request contains). One that works in the
//! caller's own time finishes it after what the caller has to do first; among others it costs him
//! what one of many costs, since they go through together.

use crate::costs::Company;

/// What the scheduler must know of a driver besides its costs.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// Whether the work takes the caller's own time.
    pub on_caller: bool,
    /// Nanoseconds until the driver has done what it has accepted.
    pub wait: f64,
}

/// Nanoseconds from now until the request is finished there.
#[inline]
pub(crate) fn finish(place: Place, alone: f64, together: f64, company: Company, ahead: f64) -> f64 {
    if place.on_caller {
        let cost = match company {
            Company::Alone => alone,
            Company::Together => together.min(alone),
        };
        return ahead + cost;
    }
    place.wait + alone.max(together)
}
