//! Who may try a password, and when: the brake on guessing, and the line before the slow class.
//!
//! The policy is in `brake` and `line`, which know neither clocks nor threads; `turns` is what they
//! share with the rest. `docs/design/004-passwords.md` says why it is as it is.

mod attempt;
mod brake;
mod limits;
mod line;
mod table;
mod turns;

pub use attempt::{Attempt, BindHistory};
pub(crate) use turns::{Admission, Begun, Recognition, Turn};

#[cfg(test)]
mod tests;
