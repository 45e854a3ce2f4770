//! Several servers of one directory, as an administrator sets them up: tokens, joins, and what goes wrong with them.

mod applications;
mod balancer;
mod chaos;
mod clients;
mod configured;
mod everywhere;
mod fenced;
mod haproxy;
mod joins;
mod keycloak;
mod refusals;
mod reigns;
mod rejoins;
mod relay;
mod site;
mod sssd;
mod status;
mod three;
mod wire;
mod writes;
