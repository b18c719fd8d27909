//! The resolver inside: it knows only what the policy allows, and gives out addresses that lead to the gateway.
//!
//! No question of a sandbox ever leaves the machine as it is asked. Whether a name exists is asked outside only of names
//! that the policy allows; of others nobody hears. That it was asked is on record before it is, and what came of it after.

use hickory_resolver::proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, AAAA};
use hickory_resolver::proto::rr::{DNSClass, RData, Record, RecordType};
use model::net::{PROXY, Verdict, is_ours};
use model::request::Protocol;

use super::book;
use super::inspect::chain;
use super::names::Lookup;
use super::outlet::{Outlet, Question};

/// Answers a question, if it is one.
pub(super) async fn answer(outlet: &Outlet, question: &[u8]) -> Option<Vec<u8>> {
    let message = Message::from_vec(question).ok()?;
    if message.metadata.message_type != MessageType::Query {
        return None;
    }
    let mut answer = Message::response(message.metadata.id, message.metadata.op_code);
    answer.metadata.recursion_desired = message.metadata.recursion_desired;
    answer.metadata.recursion_available = true;
    answer.add_queries(message.queries.iter().cloned());
    match (message.metadata.op_code, message.queries.as_slice()) {
        (OpCode::Query, [query]) if query.query_class() == DNSClass::IN => {
            match decide(outlet, query).await {
                Ok(records) => answer.insert_answers(records),
                Err(code) => answer.metadata.response_code = code,
            }
        }
        _ => answer.metadata.response_code = ResponseCode::NotImp,
    }
    answer.to_vec().ok()
}

async fn decide(outlet: &Outlet, query: &Query) -> Result<Vec<Record>, ResponseCode> {
    let name = query.name().to_ascii().to_ascii_lowercase();
    let name = name.strip_suffix('.').unwrap_or(&name);
    // Anything else has more than one spelling, and a pattern must not match what the resolver outside reads differently.
    if !name.bytes().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_' | b'.')) {
        outlet.refuse(Protocol::Dns, Some(name), None, None, "it is no name of a machine".to_owned()).await;
        return Err(ResponseCode::NXDomain);
    }
    let decision = outlet.policy().hears(name);
    // The gateway itself decides about what is asked of it there.
    if decision.verdict == Verdict::Deny && name != PROXY {
        outlet.refuse(Protocol::Dns, Some(name), None, None, decision.rule).await;
        return Err(ResponseCode::NXDomain);
    }
    let kind = query.query_type();
    match kind {
        RecordType::A | RecordType::AAAA => {}
        // Asked beside the others by browsers; that there is nothing is an answer.
        RecordType::HTTPS | RecordType::SVCB => return Ok(Vec::new()),
        _ => {
            outlet.refuse(Protocol::Dns, Some(name), None, None, format!("{kind} is not answered")).await;
            return Err(ResponseCode::Refused);
        }
    }
    let exists_here = is_ours(name) || name == PROXY || outlet.policy().answers(name);
    if !exists_here {
        look_up(outlet, name, decision.rule).await?;
    }
    let number = outlet.give(name).await.ok_or(ResponseCode::ServFail)?;
    let data = match kind {
        RecordType::A => RData::A(A(book::ipv4(number))),
        _ if outlet.has_ipv6() => RData::AAAA(AAAA(book::ipv6(number))),
        _ => return Ok(Vec::new()),
    };
    Ok(vec![Record::from_rdata(query.name().clone(), SECONDS, data)])
}

/// Asks outside whether there is such a name.
async fn look_up(outlet: &Outlet, name: &str, rule: String) -> Result<(), ResponseCode> {
    if !outlet.has_room_for(name).await {
        let rule = "it has asked for as many names as a sandbox may".to_owned();
        outlet.refuse(Protocol::Dns, Some(name), None, None, rule).await;
        return Err(ResponseCode::ServFail);
    }
    let question = outlet.begin_question(name, rule).await;
    if matches!(question, Question::Unheard) {
        return Err(ResponseCode::ServFail);
    }
    let (error, outcome) = match outlet.names().look_up(name).await {
        Lookup::Addresses(_) => (None, Ok(())),
        Lookup::Nothing => (Some("the name leads nowhere".to_owned()), Err(ResponseCode::NXDomain)),
        Lookup::Failed(error) => (Some(chain(&error)), Err(ResponseCode::ServFail)),
    };
    outlet.end_question(question, error).await;
    outcome
}

/// How long an answer may be kept. The address stays the same, but the policy may change.
const SECONDS: u32 = 30;
