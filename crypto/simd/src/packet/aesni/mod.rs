//! The instructions of x86-64 in registers of one block and of two, and ChaCha20's lanes in all registers.
//! The unsafe parts: calls of code that needs features, which only a caller can make that has seen that
//! they are there; loads and stores, which take references; empty `asm!` that keeps the compiler from
//! reordering sums, and that of `strides`, which is a loop's whole body.

mod chacha;
mod strides;
mod width;
