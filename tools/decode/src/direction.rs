//! Who sends a message, and who receives it.

/// One of the two directions of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Request,
    /// From the server to the client.
    Response,
}

impl Direction {
    /// Whose octets these are.
    #[must_use]
    pub fn sender(self) -> &'static str {
        match self {
            Direction::Request => "client",
            Direction::Response => "server",
        }
    }
}
