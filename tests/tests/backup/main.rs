//! Backups where they are needed: beside clients that write all the time, on three file systems, to points in time,
//! from repositories that are damaged, on disks that are full, and after kills. Each restored folder is compared with
//! what clients were told. Seeds of all that is random are printed.

mod damages;
mod failing;
mod kills;
mod load;
mod points;
mod site;
mod state;
mod writers;
