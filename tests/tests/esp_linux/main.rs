//! `keyway esp` and other people's ESP: Linux's, in User-Mode Linux.

mod between_guests;
mod cases;
mod every_size;
mod frames;
mod hostile;
mod machine;
mod probe;
mod site;
mod tap;
