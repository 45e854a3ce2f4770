//! Several servers of one directory, as an administrator sets them up: tokens, joins, and what goes wrong with them.

mod chaos;
mod clients;
mod everywhere;
mod fenced;
mod haproxy;
mod joins;
mod refusals;
mod reigns;
mod rejoins;
mod relay;
mod site;
mod status;
mod three;
mod wire;
mod writes;
