//! Following over connections: part 1's feed.

use std::rc::Rc;

use super::store::{CONTENTS_EVERY, Change, Row};
use super::wire::Message;
use super::world::World;
use crate::follower::{Follower, HEARTBEAT_EVERY, Step};
use crate::message::{Answer, Frame, Heartbeat, MemberId, Refusal, Request};
use crate::role::Role;
use crate::writer::answer_follow;

/// Rows that a follower commits at once.
const GROUP: usize = 64;

impl World {
    /// The server follows, serves, or both end, as its role says.
    pub fn tick_follow(&mut self, at: usize) {
        let now = self.clock(at);
        let is_writer = self.may_serve(at);
        let Some(process) = &mut self.servers[at].process else { return };
        if !is_writer && !process.serving.is_empty() {
            let conns: Vec<u64> = std::mem::take(&mut process.serving).into_keys().collect();
            conns.into_iter().for_each(|conn| self.close(conn, 1));
        }
        let Some(process) = &mut self.servers[at].process else { return };
        match process.standing.role() {
            Role::Alone | Role::Writer => {
                process.follower = None;
                if let Some(conn) = process.follow_conn.take() {
                    self.close(conn, 0);
                }
            }
            Role::Fenced | Role::Follower => {
                if process.follower.is_none() && process.committing.is_empty() {
                    let place = self.servers[at].store.place();
                    let (member, row) =
                        (self.servers[at].member, self.servers[at].store.cluster.clone());
                    let follower = Follower::new(member, place, row.as_deref(), Vec::new(), now);
                    let heard = self.servers[at].heard;
                    if let Some(process) = &mut self.servers[at].process {
                        process.follower = Some(follower);
                    }
                    self.heard(at, heard);
                }
                self.step_follow(at);
            }
        }
        if is_writer {
            self.tick_writer(at);
        }
    }

    fn step_follow(&mut self, at: usize) {
        let now = self.clock(at);
        let Some(process) = &mut self.servers[at].process else { return };
        let Some(follower) = &mut process.follower else { return };
        match follower.step(now) {
            // Rows that came are applied before others are asked for.
            Step::Connect(_) if process.applying > 0 => follower.lost("busy".into(), now),
            Step::Connect(url) => {
                process.received.clear();
                let target = self.urls.get(&url).copied().filter(|to| *to != at);
                self.connect(at, target);
            }
            Step::Close => {
                follower.lost("silent".into(), now);
                if let Some(conn) = process.follow_conn.take() {
                    self.close(conn, 0);
                }
            }
            Step::Stopped => {
                if let Some(conn) = process.follow_conn.take() {
                    self.close(conn, 0);
                }
            }
            Step::Wait(_) => {}
        }
    }

    pub fn follow_connected(&mut self, at: usize, conn: u64) {
        let now = self.clock(at);
        let Some(process) = &mut self.servers[at].process else { return };
        match &mut process.follower {
            Some(follower) if process.follow_conn == Some(conn) && process.applying == 0 => {
                let request = follower.connected(now);
                self.send(conn, 0, Message::Frame(Frame::Request(request)));
            }
            _ => self.close(conn, 0),
        }
    }

    pub fn closed(&mut self, at: usize, boot: u64, conn: u64) {
        let now = self.clock(at);
        if self.servers[at].boots != boot {
            return;
        }
        self.conns.remove(&conn);
        let Some(process) = &mut self.servers[at].process else { return };
        process.serving.remove(&conn);
        if let Some(follower) = &mut process.follower
            && (process.follow_conn == Some(conn) || conn == 0)
        {
            process.follow_conn = None;
            follower.lost("closed".into(), now);
        }
    }

    /// A frame for the end that follows.
    pub fn follower_frame(&mut self, at: usize, conn: u64, message: Message) -> Result<(), String> {
        let now = self.clock(at);
        let Some(process) = &mut self.servers[at].process else { return Ok(()) };
        let Some(follower) = &mut process.follower else { return Ok(()) };
        if process.follow_conn != Some(conn) {
            return Ok(());
        }
        let told = match message {
            Message::Row(row) => {
                let told = follower.row(&row.header(), now);
                if told.is_ok() {
                    process.received.push_back(row);
                }
                told
            }
            Message::Frame(Frame::Answer(answer)) => {
                let told = follower.answered(&answer, now);
                let is_asking = follower.is_asking();
                let heard = follower.highest();
                if !is_asking {
                    process.follow_conn = None;
                    self.close(conn, 0);
                }
                self.heard(at, heard);
                told
            }
            Message::Frame(Frame::Heartbeat(heartbeat)) => {
                let told = follower.heartbeat(&heartbeat, now);
                let position = follower.place().position;
                self.send(conn, 0, Message::Frame(Frame::Acknowledge { position }));
                told
            }
            Message::Frame(_) => Ok(()),
        };
        if let Err(why) = told {
            self.note(|| format!("server {at}: {why}"));
            self.checker.stops(at, &why)?;
        }
        self.next_apply(at);
        Ok(())
    }

    fn next_apply(&mut self, at: usize) {
        let Some(process) = &mut self.servers[at].process else { return };
        if !process.is_disk_busy() && !process.received.is_empty() {
            process.applying = process.received.len().min(GROUP);
            self.sync(at);
        }
    }

    /// A group of rows is on the disk.
    pub fn applied(&mut self, at: usize) -> Result<(), String> {
        let Some(process) = &mut self.servers[at].process else { return Ok(()) };
        let count = std::mem::take(&mut process.applying);
        let group: Vec<Rc<Row>> = process.received.drain(..count).collect();
        // It may have been promoted meanwhile.
        if process.follower.is_none() {
            return Ok(());
        }
        for row in &group {
            self.apply(at, row)?;
        }
        self.servers[at].durable = self.servers[at].store.position();
        let place = self.servers[at].store.place();
        let Some(process) = &mut self.servers[at].process else { return Ok(()) };
        let Some(follower) = &mut process.follower else { return Ok(()) };
        follower.applied(place);
        if let Some(conn) = process.follow_conn.filter(|_| follower.is_following()) {
            let acknowledge = Frame::Acknowledge { position: place.position };
            self.send(conn, 0, Message::Frame(acknowledge));
        }
        self.next_apply(at);
        self.tick_waiting(at)
    }

    /// Applies a row that was checked; the checker looks again.
    pub fn apply(&mut self, at: usize, row: &Rc<Row>) -> Result<(), String> {
        let place = self.servers[at].store.place();
        if (row.position, row.before) != (place.position + 1, place.digest) {
            return Err(format!("server {at} applies {} behind {}", row.position, place.position));
        }
        self.servers[at].store.apply(row);
        if matches!(row.change, Change::Cluster(_)) {
            self.row_changed(at);
        }
        let contents = self.servers[at].store.contents();
        let contents = contents.filter(|_| row.position.is_multiple_of(CONTENTS_EVERY));
        if let Some(process) = &mut self.servers[at].process
            && let (Some(follower), Some(contents)) = (&mut process.follower, contents)
            && let Err(why) = follower.contents(contents)
        {
            return Err(format!("server {at} has other contents: {why}"));
        }
        Ok(())
    }

    /// A frame for the end that writes.
    pub fn writer_frame(&mut self, at: usize, conn: u64, message: Message) -> Result<(), String> {
        let now = self.clock(at);
        match message {
            Message::Frame(Frame::Request(Request::Follow { member, place, heard })) => {
                self.heard(at, heard);
                let server = &mut self.servers[at];
                let store = &server.store;
                let (own, first_kept) = (store.place(), store.first_kept);
                let Some(process) = &mut server.process else { return Ok(()) };
                let serving = process.standing.may_serve(now);
                let digest_at = |position| store.digest_at(position);
                let told = answer_follow(&own, serving, first_kept, digest_at, &place);
                let answer = match told {
                    Ok(following) => {
                        let (epoch, head) = (following.epoch, following.head);
                        let answer =
                            Message::Frame(Frame::Answer(Answer::Following { epoch, head }));
                        self.send(conn, 1, answer);
                        let rows = &self.servers[at].store.rows;
                        let rows: Vec<_> =
                            rows.iter().skip(following.after as usize).cloned().collect();
                        rows.into_iter().for_each(|row| self.send(conn, 1, Message::Row(row)));
                        if let Some(process) = &mut self.servers[at].process {
                            process.serving.insert(conn, member);
                            process.progress.acknowledged(member, place.position, now);
                        }
                        return Ok(());
                    }
                    Err(why) => why,
                };
                if matches!(answer, Refusal::Behind { .. } | Refusal::Forked { .. }) {
                    process.standing.stop(answer.clone());
                    self.note(|| format!("server {at} stops writing: {answer}"));
                }
                let heard = self.servers[at].process.as_ref().and_then(|it| it.standing.highest());
                self.send(conn, 1, Message::Frame(Frame::Answer(Answer::refused(answer, heard))));
            }
            Message::Frame(Frame::Acknowledge { position }) => {
                let Some(process) = &mut self.servers[at].process else { return Ok(()) };
                if let Some(member) = process.serving.get(&conn) {
                    process.progress.acknowledged(*member, position, now);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A row that was committed goes to all that follow.
    pub fn send_row(&mut self, at: usize, row: &Rc<Row>) {
        let Some(process) = &self.servers[at].process else { return };
        let conns: Vec<u64> = process.serving.keys().copied().collect();
        conns.into_iter().for_each(|conn| self.send(conn, 1, Message::Row(Rc::clone(row))));
    }

    fn tick_writer(&mut self, at: usize) {
        let now = self.clock(at);
        let place = self.servers[at].store.place();
        let contents = self.servers[at].store.contents();
        let Some(process) = &mut self.servers[at].process else { return };
        if now >= process.next_beat {
            process.next_beat = now + HEARTBEAT_EVERY;
            let unix_us = now.as_micros() as u64;
            let beat = Heartbeat { head: place.position, epoch: place.epoch, unix_us, contents };
            let near = |member| process.progress.is_near(member, now);
            let (conns, silent): (Vec<_>, Vec<_>) =
                process.serving.iter().partition(|(_, member)| near(**member));
            let (conns, silent) = (ids(&conns), ids(&silent));
            process.serving.retain(|conn, _| !silent.contains(conn));
            silent.into_iter().for_each(|conn| self.close(conn, 1));
            for conn in conns {
                self.send(conn, 1, Message::Frame(Frame::Heartbeat(beat)));
            }
        }
        self.trim(at);
    }

    /// Removes old rows: of those that members may need, none while these are young.
    pub fn trim(&mut self, at: usize) {
        let now = self.clock(at);
        let limit = self.young();
        // The writer too may lose what is not on its disk, and take it from etcd again.
        let position = self.servers[at].durable;
        let Some(process) = &mut self.servers[at].process else { return };
        if now < process.next_trim {
            return;
        }
        process.next_trim = now + HEARTBEAT_EVERY;
        if let Some(until) = process.progress.trim_until(now, limit, position.saturating_sub(20)) {
            let store = &mut self.servers[at].store;
            store.first_kept = store.first_kept.max(until + 1);
        }
    }
}

fn ids(of: &[(&u64, &MemberId)]) -> Vec<u64> {
    of.iter().map(|(conn, _)| **conn).collect()
}
