//! The schemes of stored passwords that may be accepted or not.

/// How a password is stored. Argon2 is not among them: it is always verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// {PBKDF2}, {PBKDF2-SHA1}, {PBKDF2-SHA256}, {PBKDF2-SHA512}, {PBKDF2_SHA256}.
    Pbkdf2,
    /// {BCRYPT}, and {CRYPT} with `$2a$`, `$2b$` or `$2y$`.
    Bcrypt,
    /// {CRYPT} with `$5$` or `$6$`.
    ShaCrypt,
    /// {SSHA}, {SSHA256}, {SSHA384}, {SSHA512}: fast, but salted.
    Ssha,
    /// {SHA}, {SHA256}, {SHA384}, {SHA512}: fast, and equal passwords look equal.
    Sha,
    /// {CRYPT} with `$1$`: not fast, but too fast since 2012.
    Md5Crypt,
    /// {SMD5}: MD5 with a salt.
    Smd5,
    /// {MD5}.
    Md5,
}

impl Scheme {
    /// All of them, by their names in a configuration.
    pub const NAMES: [(&str, Scheme); 8] = [
        ("pbkdf2", Scheme::Pbkdf2),
        ("bcrypt", Scheme::Bcrypt),
        ("sha-crypt", Scheme::ShaCrypt),
        ("ssha", Scheme::Ssha),
        ("sha", Scheme::Sha),
        ("md5-crypt", Scheme::Md5Crypt),
        ("smd5", Scheme::Smd5),
        ("md5", Scheme::Md5),
    ];

    /// Those that are accepted if the settings do not say otherwise: what is slow, or at least salted and not
    /// MD5.
    pub fn defaults() -> Vec<Scheme> {
        vec![Scheme::Pbkdf2, Scheme::Bcrypt, Scheme::ShaCrypt, Scheme::Ssha]
    }

    /// The one of a name.
    pub fn from_name(name: &str) -> Option<Scheme> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, scheme)| *scheme)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, scheme)| *scheme == self).map_or("", |(name, _)| name)
    }
}
