//! Who asks, where nobody says so: a person only if somebody can be at the other end.

use model::env::Environment;
use model::sandbox::Actor;

use crate::failure::Failure;

/// What `ZENO_ACTOR` says, or what the surroundings look like. A program can look like a person if it wants to: this is
/// for the record, not a lock.
pub(crate) fn who(environment: &Environment, at_a_terminal: bool) -> Result<Actor, Failure> {
    match &environment.actor {
        Some(text) => Actor::named(text).ok_or_else(|| Failure::Nobody { text: text.clone() }),
        None if environment.ci => Ok(Actor::Atm),
        None if environment.agent || !at_a_terminal => Ok(Actor::Agt),
        None => Ok(Actor::Adm),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_sits_at_a_terminal_and_is_neither_an_agent_nor_ci() {
        let plain = Environment::default();
        let said =
            |text: &str| Environment { actor: Some(text.to_owned()), ci: true, ..Environment::default() };
        let cases = [
            (plain.clone(), true, Actor::Adm),
            (plain.clone(), false, Actor::Agt),
            (Environment { agent: true, ..plain.clone() }, true, Actor::Agt),
            (Environment { ci: true, agent: true, ..plain.clone() }, true, Actor::Atm),
            (Environment { ci: true, ..plain }, false, Actor::Atm),
            (said("adm"), false, Actor::Adm),
            (said("agt"), true, Actor::Agt),
        ];
        for (environment, at_a_terminal, expected) in cases {
            assert_eq!(
                who(&environment, at_a_terminal).unwrap(),
                expected,
                "{environment:?} {at_a_terminal}"
            );
        }
        assert_eq!(who(&said("root"), true).unwrap_err().exit(), 2);
    }
}
