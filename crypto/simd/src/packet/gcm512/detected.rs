//! That the processor has AVX-512, as this backend uses it.

/// Shows that the features are there: code that has one may call what needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gcm512(());

impl Gcm512 {
    pub(crate) fn detect() -> Option<Self> {
        let there = std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512vl")
            && std::is_x86_feature_detected!("avx512vbmi")
            && std::is_x86_feature_detected!("vaes")
            && std::is_x86_feature_detected!("vpclmulqdq")
            && std::is_x86_feature_detected!("aes")
            && std::is_x86_feature_detected!("pclmulqdq")
            && std::is_x86_feature_detected!("bmi2");
        there.then_some(Self(()))
    }
}
