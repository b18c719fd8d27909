//! What a tool says: a text to read, and the same as data. What went wrong is said in the same way.

use model::{Code, Problem};
use rmcp::ErrorData;
use rmcp::handler::server::tool::IntoCallToolResult;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ErrorCode};
use serde::Serialize;
use serde_json::{Value, json};

/// Nobody reads more, and a longer message would end the conversation.
const LARGEST: usize = 1 << 20;

/// What every tool gives.
pub(super) type Told = Result<Answer, Refused>;

#[derive(Debug)]
pub(super) struct Answer {
    text: String,
    data: Value,
}

impl Answer {
    /// The data has to be an object.
    pub(super) fn new(text: impl Into<String>, data: &impl Serialize) -> Self {
        let data = serde_json::to_value(data).expect("plain data with string keys");
        let (length, text) = (data.to_string().len(), text.into());
        if length > LARGEST {
            let text = format!("{text}The same as data is left out: it has {length} bytes.\n");
            return Self { text, data: json!({ "left_out": { "bytes": length } }) };
        }
        Self { text, data }
    }

    pub(super) fn into_result(self) -> CallToolResult {
        let mut result = CallToolResult::success(vec![ContentBlock::text(self.text)]);
        result.structured_content = Some(self.data);
        result
    }
}

impl IntoCallToolResult for Answer {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        Ok(self.into_result().into())
    }
}

/// Why a tool did not do what it was asked. For the model to read, which can do better.
#[derive(Debug)]
pub(super) struct Refused(pub(super) Problem);

impl Refused {
    pub(super) fn cancelled() -> Self {
        Self(Problem::new(Code::NotReady, "cancelled"))
    }

    pub(super) fn ending() -> Self {
        Self(
            Problem::new(Code::NotReady, "the daemon is shutting down")
                .hint("call again: it is started anew"),
        )
    }

    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Self(Problem::new(Code::BadRequest, detail))
    }

    pub(super) fn into_result(self) -> CallToolResult {
        let mut result = CallToolResult::error(vec![ContentBlock::text(told(&self.0))]);
        result.structured_content = Some(problem_data(&self.0));
        result
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoCallToolResult for Refused {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        Ok(self.into_result().into())
    }
}

/// The same where the protocol has no other place for it than an error: resources.
pub(super) fn fault(problem: &Problem) -> ErrorData {
    let code = match problem.code {
        Code::NotFound => ErrorCode::RESOURCE_NOT_FOUND,
        Code::BadRequest => ErrorCode::INVALID_PARAMS,
        _ => ErrorCode::INTERNAL_ERROR,
    };
    ErrorData::new(code, told(problem), Some(problem_data(problem)))
}

fn problem_data(problem: &Problem) -> Value {
    #[derive(Serialize)]
    struct Wrapped<'a> {
        problem: &'a Problem,
    }
    serde_json::to_value(Wrapped { problem }).expect("a problem is plain data")
}

/// What failed, why, and what to do next, a line each.
fn told(problem: &Problem) -> String {
    let causes = problem.causes.iter().map(|cause| format!("\nbecause: {cause}"));
    let hints = problem.hints.iter().map(|hint| format!("\nwhat to do: {hint}"));
    std::iter::once(problem.detail.clone()).chain(causes).chain(hints).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_keeps_its_cause_and_its_remedy() {
        let problem = Problem {
            causes: vec!["the disk is full".to_owned()],
            ..Problem::new(Code::DiskFull, "cannot write").hint("zeno gc")
        };
        let result = serde_json::to_value(Refused(problem).into_result()).unwrap();
        assert_eq!(result["isError"], true);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(text, "cannot write\nbecause: the disk is full\nwhat to do: zeno gc");
        assert_eq!(result["structuredContent"]["problem"]["code"], "disk_full");
    }
}
