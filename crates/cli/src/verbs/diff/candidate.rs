//! Candidates of races by the names they had there: `RACE/right`, or `right` of the last race.

use model::race::Race;
use model::{Name, SandboxId};

use crate::api::Api;
use crate::args::which::Which;
use crate::failure::Failure;

/// The sandbox of the candidate with this name, if there is one.
pub(super) async fn find(api: &Api, named: &Which) -> Result<Option<Which>, Failure> {
    Ok(of(&api.races().await?, named).map(Which::from))
}

/// The sandbox that is meant: the candidate, where no sandbox has this name.
pub(super) async fn or_sandbox(api: &Api, named: &Which) -> Result<Which, Failure> {
    if named.candidate().is_none() && api.has_sandbox(named).await? {
        return Ok(named.clone());
    }
    match find(api, named).await? {
        Some(found) => Ok(found),
        None if named.candidate().is_some() => Err(Failure::NoCandidate { named: named.to_string() }),
        // Whoever is asked for it next says what there is.
        None => Ok(named.clone()),
    }
}

fn of(races: &[Race], named: &Which) -> Option<SandboxId> {
    let (race, name) = match named.candidate() {
        Some((id, name)) => (races.iter().find(|race| race.id == id)?, name),
        None => (races.last()?, named.to_string().parse::<Name>().ok()?),
    };
    race.entries.iter().find(|entry| entry.name == name)?.sandbox
}

#[cfg(test)]
mod tests {
    use model::RaceId;

    use super::*;
    use crate::render::samples;

    #[test]
    fn of_the_last_race_or_of_the_one_that_is_named() {
        let race = |bits: u64, sandbox: u64| {
            let mut race = Race { id: RaceId::from_bits(bits), ..samples::race() };
            for entry in &mut race.entries {
                entry.sandbox = Some(SandboxId::from_bits(sandbox));
            }
            race
        };
        let races = [race(1, 10), race(2, 20)];
        let found = |text: &str| of(&races, &Which::or_candidate(text).unwrap());
        assert_eq!(found("small"), Some(SandboxId::from_bits(20)));
        assert_eq!(found(&format!("{}/small", races[0].id)), Some(SandboxId::from_bits(10)));
        assert_eq!(found("nobody"), None);
        assert_eq!(found(&format!("{}/small", RaceId::from_bits(3))), None);
        assert_eq!(of(&[], &"small".parse().unwrap()), None);
    }
}
