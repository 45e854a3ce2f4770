//! A proxy between clients and a server: it passes on what they say, and hands a copy of it to a [`Tap`].

mod connection;
mod ends;
mod pass;

pub use ends::ProxyOptions;

use super::Say;
use crate::Tap;
use crate::limits::{PROXY_CONNECTIONS_MAX, PROXY_WAIT};
use connection::serve;
use ends::Ends;
use keyway_host::failure::{Failure, plain};
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// A proxy of one server.
pub struct Proxy(Arc<Ends>);

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("to", &self.0.to).finish_non_exhaustive()
    }
}

impl Proxy {
    /// One that hands copies to this tap.
    ///
    /// # Errors
    /// If the server's host is no name and no address.
    pub fn new(options: ProxyOptions, tap: Arc<Tap>) -> Result<Proxy, Failure> {
        Ends::new(options, tap).map(|ends| Proxy(Arc::new(ends)))
    }

    /// Takes connections for as long as the system gives them.
    ///
    /// # Errors
    /// If the socket cannot be used.
    pub async fn accept(&self, listener: std::net::TcpListener, say: &Say) -> Result<(), Failure> {
        let wrong = |why: io::Error| Failure::new(format!("cannot listen: {}", plain(&why)));
        listener.set_nonblocking(true).map_err(wrong)?;
        let listener = TcpListener::from_std(listener).map_err(wrong)?;
        let places = Arc::new(Semaphore::new(PROXY_CONNECTIONS_MAX));
        let mut number = 0;
        loop {
            let place = places.clone().acquire_owned().await;
            match listener.accept().await {
                Ok((client, from)) => {
                    number += 1;
                    let (ends, number) = (self.0.clone(), number);
                    tokio::spawn(async move {
                        serve(client, from, number, &ends).await;
                        drop(place);
                    });
                }
                // No file left, most likely: it is the next one's turn when one is closed.
                Err(why) => {
                    say(&format_args!("a connection was not taken: {}", plain(&why)));
                    tokio::time::sleep(PROXY_WAIT / 100).await;
                }
            }
        }
    }
}
