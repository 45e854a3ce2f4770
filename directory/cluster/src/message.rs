//! What members say to each other: frames, the requests and answers in them, and the row that says which members there
//! are.

mod answer;
mod check;
mod decoder;
mod frame;
mod hex;
mod ids;
mod refusal;
mod request;
mod row;
mod status;
#[cfg(test)]
mod tests;

pub use answer::{Answer, BaseFile};
pub use check::{Invalid, NAME_LIMIT, URL_LIMIT};
pub use decoder::Decoder;
pub use frame::{Frame, FrameError, Heartbeat, LARGE_FRAME, SMALL_FRAME};
pub use ids::{ClusterId, Digest, History, MemberId, Place, Reign};
pub use refusal::Refusal;
pub use request::{Request, Token};
pub use row::{BEGAN_LIMIT, Began, ClusterRow, MEMBERS_LIMIT, Member};
pub use status::{Contents, FollowerStatus, RoleName, Status};
