//! Several servers of one directory, as an administrator sets them up: tokens, joins, and what goes wrong with them.

mod joins;
mod refusals;
mod rejoins;
mod site;
