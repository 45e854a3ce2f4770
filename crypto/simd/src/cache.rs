//! The cache. The unsafe part is one instruction, for which no address is wrong.

#[cfg(target_arch = "aarch64")]
use std::arch::asm;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::ptr;

/// Starts to bring a key into the cache.
#[cfg(target_arch = "aarch64")]
#[inline]
pub(crate) fn fetch<T>(key: &T) {
    let lines = ptr::from_ref(key).cast::<[i8; 64]>();
    for line in 0..size_of::<T>().div_ceil(64) {
        let line = lines.wrapping_add(line);
        // SAFETY: no address is wrong.
        unsafe { asm!("prfm pldl1keep, [{}]", in(reg) line, options(nostack, preserves_flags)) };
    }
}

/// Starts to bring a key into the cache.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn fetch<T>(key: &T) {
    let lines = ptr::from_ref(key).cast::<[i8; 64]>();
    for line in 0..size_of::<T>().div_ceil(64) {
        // SAFETY: every processor of this kind has the feature, and no address is wrong.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(lines.wrapping_add(line).cast()) };
    }
}
