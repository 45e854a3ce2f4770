//! Servers whose writer holds a lease in a real etcd: each of them killed, stopped, cut off and set back, while clients
//! write.

mod behind;
mod contexts;
mod damaged;
mod etcd_away;
mod fenced;
mod kills;
mod large;
mod load;
mod power;
mod refused;
mod restored;
mod shutdown;
mod site;
mod tls;
