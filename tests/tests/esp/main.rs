//! `keyway esp`, end to end: two gateways in network namespaces of the test's own.

mod carry;
mod figures;
mod hostile;
mod keyed;
mod killed;
mod lifetime;
mod reload;
mod site;
mod wrong;
