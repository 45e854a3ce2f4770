//! `keyway esp` and other people's ESP: Linux's, in User-Mode Linux.

mod between_guests;
mod cases;
mod frames;
mod machine;
