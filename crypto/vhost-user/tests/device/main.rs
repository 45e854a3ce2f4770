//! The device, driven by a front end and a driver of these tests: as QEMU 7.2 and User-Mode Linux do it, and as no honest
//! one does.

mod front_end;
mod hostile;
mod messages;
mod requests;
mod stops;
