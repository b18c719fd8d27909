//! The OpenAPI 3.1 document, made from the table of routes and the schemas of `model`.

use std::collections::BTreeMap;

use model::Problem;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;

use super::door::OPEN_PATH;
use super::query::{Param, ParamKind};
use super::route::{Content, JSON, Route};
use super::table;

/// The document, as `GET /v1/openapi.json` answers it and `xtask generate` writes it.
#[must_use]
pub fn openapi() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.into_generator();

    let mut paths: BTreeMap<&str, BTreeMap<&str, Operation>> = BTreeMap::new();
    for route in table::routes() {
        let operation = Operation::of(&route, &mut generator);
        paths.entry(route.path).or_default().insert(route.verb.as_str(), operation);
    }
    let document = Document {
        openapi: "3.1.0",
        info: Info { title: "zeno", version: crate::VERSION },
        paths,
        security: vec![BTreeMap::from([("token", Vec::new())])],
        components: Components {
            schemas: generator.take_definitions(true),
            security_schemes: BTreeMap::from([("token", SecurityScheme { kind: "http", scheme: "bearer" })]),
        },
    };
    serde_json::to_value(document).expect("string keys only")
}

#[derive(Serialize)]
struct Document {
    openapi: &'static str,
    info: Info,
    paths: BTreeMap<&'static str, BTreeMap<&'static str, Operation>>,
    security: Vec<Security>,
    components: Components,
}

#[derive(Serialize)]
struct Info {
    title: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Components {
    schemas: serde_json::Map<String, Value>,
    security_schemes: BTreeMap<&'static str, SecurityScheme>,
}

#[derive(Serialize)]
struct SecurityScheme {
    #[serde(rename = "type")]
    kind: &'static str,
    scheme: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Operation {
    summary: &'static str,
    parameters: Vec<Parameter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_body: Option<RequestBody>,
    responses: BTreeMap<String, Response>,
    #[serde(skip_serializing_if = "Option::is_none")]
    security: Option<Vec<Security>>,
}

/// Which scheme with which scopes.
type Security = BTreeMap<&'static str, Vec<String>>;

#[derive(Serialize)]
struct Parameter {
    name: String,
    #[serde(rename = "in")]
    place: &'static str,
    required: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'static str,
    schema: Schema,
}

#[derive(Serialize)]
struct RequestBody {
    required: bool,
    content: BTreeMap<&'static str, Media>,
}

#[derive(Serialize)]
struct Response {
    description: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    content: BTreeMap<&'static str, Media>,
}

#[derive(Serialize)]
struct Media {
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Schema>,
}

impl Operation {
    fn of(route: &Route, generator: &mut SchemaGenerator) -> Self {
        let in_path = names_in(route.path).map(|name| Parameter {
            name: name.to_owned(),
            place: "path",
            required: true,
            description: "",
            schema: if name == "exec" {
                generator.subschema_for::<u32>()
            } else {
                generator.subschema_for::<String>()
            },
        });
        let mut parameters: Vec<_> = in_path.collect();
        parameters.extend(route.query.iter().map(|param| Parameter::of(param, generator)));
        let mut responses: BTreeMap<String, Response> = BTreeMap::new();
        for (status, content) in &route.responses {
            let response = responses.entry(status.as_str().to_owned()).or_insert_with(|| {
                let description = status.canonical_reason().unwrap_or_default().to_owned();
                Response { description, content: BTreeMap::new() }
            });
            response.content.extend(media(*content, generator));
        }
        let problem = Media { schema: Some(generator.subschema_for::<Problem>()) };
        responses.insert(
            "default".to_owned(),
            Response {
                description: "What went wrong".to_owned(),
                content: BTreeMap::from([("application/problem+json", problem)]),
            },
        );
        let request_body = route
            .request
            .map(|content| RequestBody { required: true, content: media(Some(content), generator) });
        // An empty list takes back what holds for the whole document.
        let security = (route.path == OPEN_PATH).then(Vec::new);
        Self { summary: route.summary, parameters, request_body, responses, security }
    }
}

impl Parameter {
    fn of(param: &Param, generator: &mut SchemaGenerator) -> Self {
        let schema = match param.kind {
            ParamKind::Flag => generator.subschema_for::<bool>(),
            ParamKind::Number => generator.subschema_for::<u64>(),
            ParamKind::Text | ParamKind::RequiredText => generator.subschema_for::<String>(),
            ParamKind::Texts => generator.subschema_for::<Vec<String>>(),
        };
        Self {
            name: param.name.to_owned(),
            place: "query",
            required: param.kind == ParamKind::RequiredText,
            description: param.about,
            schema,
        }
    }
}

fn media(content: Option<Content>, generator: &mut SchemaGenerator) -> BTreeMap<&'static str, Media> {
    let Some(content) = content else { return BTreeMap::new() };
    debug_assert!(content.schema.is_some() || content.media != JSON, "JSON has a shape");
    BTreeMap::from([(content.media, Media { schema: content.schema.map(|schema| schema(generator)) })])
}

fn names_in(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}
