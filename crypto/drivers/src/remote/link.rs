//! A connection with what requests need of it and give back: channels, and regions for large ones.

use super::channel::Channel;
use super::connection::Connection;
use super::large::LargeRegions;
use super::sync::lock;
use crate::limits::{BUSY, CHANNELS_MAX};
use keyway_engine::Error;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

/// Used by all threads at once.
pub(super) struct Link {
    pub connection: Arc<Connection>,
    pub large: LargeRegions,
    channels: Mutex<Channels>,
    channel_returned: Condvar,
}

#[derive(Default)]
struct Channels {
    free: Vec<Channel>,
    /// Those in use too.
    made: usize,
}

impl Link {
    pub fn new(connection: Connection) -> Link {
        let connection = Arc::new(connection);
        Link {
            large: LargeRegions::new(&connection),
            connection,
            channels: Mutex::default(),
            channel_returned: Condvar::new(),
        }
    }

    /// Ends the connection, and lets go of what is free. A connection that ends by itself is ended here by the
    /// thread that waits for its end.
    pub fn die(&self) {
        if self.connection.is_inherited() {
            return;
        }
        self.connection.die();
        let mut channels = lock(&self.channels);
        channels.free.clear();
        drop(channels);
        self.channel_returned.notify_all();
        self.large.clear();
    }

    /// A channel of one's own, for as long as one likes; `None` if there are as many as there may
    /// be.
    pub fn channel(&self) -> Result<Option<Channel>, Error> {
        if self.connection.is_inherited() {
            return Err(Error::Gone);
        }
        let mut channels = lock(&self.channels);
        if self.connection.is_dead() {
            return Err(Error::Gone);
        }
        if let Some(channel) = channels.free.pop() {
            return Ok(Some(channel));
        }
        if channels.made >= CHANNELS_MAX {
            return Ok(None);
        }
        channels.made += 1;
        drop(channels);
        let made = self.new_channel();
        if made.is_err() {
            lock(&self.channels).made -= 1;
        }
        match made {
            Ok(channel) => Ok(Some(channel)),
            Err(Error::Busy) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A channel that is to be returned soon: waits until there is one.
    pub fn wait_for_channel(&self) -> Result<Channel, Error> {
        let begun = Instant::now();
        loop {
            if let Some(channel) = self.channel()? {
                return Ok(channel);
            }
            let channels = lock(&self.channels);
            let most = BUSY.saturating_sub(begun.elapsed());
            if most.is_zero() {
                return Err(Error::Busy);
            }
            if channels.free.is_empty() && !self.connection.is_dead() {
                drop(self.channel_returned.wait_timeout(channels, most));
            }
        }
    }

    /// Takes back a channel that nothing is under way on.
    pub fn return_channel(&self, channel: Channel) {
        if self.connection.is_inherited() {
            return;
        }
        let mut channels = lock(&self.channels);
        // With the channels locked: `die` clears what comes before it.
        if !self.connection.is_dead() {
            channels.free.push(channel);
        }
        drop(channels);
        self.channel_returned.notify_one();
    }

    /// Gives up one that something is under way on, which no thread waits for any more.
    pub fn close_channel(&self, channel: Channel) {
        let (queue, region) = (channel.queue, channel.region);
        drop(channel);
        if self.connection.is_inherited() {
            return;
        }
        self.connection.close_queue(queue);
        self.connection.forget(region);
        lock(&self.channels).made -= 1;
        self.channel_returned.notify_one();
    }

    fn new_channel(&self) -> Result<Channel, Error> {
        let pair = self.connection.queue_pair()?;
        let queue = pair.queue;
        let made = Channel::new(&self.connection, pair);
        made.inspect_err(|_| self.connection.close_queue(queue))
    }
}
