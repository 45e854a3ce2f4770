//! The ends of a connection, and the directions between them.

/// One of the two directions of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Request,
    /// From the server to the client.
    Response,
}

impl Direction {
    /// The sender's role.
    #[must_use]
    pub fn sender(self) -> &'static str {
        match self {
            Direction::Request => "client",
            Direction::Response => "server",
        }
    }
}

/// The end that octets come from: `First` is that of the address that was named first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The client, as far as is known.
    First,
    /// The server.
    Second,
}

impl Side {
    pub(crate) fn other(self) -> Self {
        match self {
            Side::First => Side::Second,
            Side::Second => Side::First,
        }
    }

    pub(crate) fn index(self) -> usize {
        match self {
            Side::First => 0,
            Side::Second => 1,
        }
    }
}
