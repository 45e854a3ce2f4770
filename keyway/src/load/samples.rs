//! Scenarios that come with the program, filled in with what flags and the server say.

use crate::provider::provider;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_load::{Options, SAMPLES, Sample, Scenario};
use std::path::Path;

/// Takes what no flag has said from what the server shows.
pub fn shown_by_server(options: &mut Options, is_loud: bool) -> Result<(), Failure> {
    let mut asked = options.absolute()?;
    let said = keyway_load::survey(&mut asked, &provider())?;
    (options.base, options.users) = (asked.base, asked.users);
    if let Some(said) = said.filter(|_| is_loud) {
        output::note(said);
    }
    Ok(())
}

/// A sample filled in.
pub fn sample(name: &str, options: &Options) -> Result<(String, Scenario), Failure> {
    let sample = named(name)?;
    if sample.needs_admin() && options.admin.is_none() && !options.external {
        return Err(Failure::usage(format!(
            "{name} has operations that take rights; name an account with --bind-dn DN and \
             --password-file FILE, or with --external"
        )));
    }
    if options.template.is_some() && !sample.takes_template() {
        let names = SAMPLES.iter().filter(|it| it.takes_template()).map(|it| it.name);
        return Err(Failure::usage(format!(
            "--template is for scenarios that add entries whatever they are called: {}",
            names.collect::<Vec<_>>().join(" and ")
        )));
    }
    let options = options.absolute()?;
    let text = sample.text(&options);
    let what = format!("the scenario of '{name}' (--show-scenario prints it)");
    let mut scenario = Scenario::parse(&text, &what, Path::new(""))?;
    scenario.trust.own_ca = options.own_ca;
    Ok((text, scenario))
}

pub fn named(name: &str) -> Result<&'static Sample, Failure> {
    Sample::named(name).ok_or_else(|| {
        let names: Vec<&str> = SAMPLES.iter().map(|sample| sample.name).collect();
        Failure::usage(format!("there is no scenario '{name}'; there are {}", names.join(", ")))
    })
}
