//! The table against the router and the document made from it.

use std::collections::BTreeSet;

use super::super::{openapi, routes, table};

#[test]
fn the_document_has_exactly_the_routes_of_the_router() {
    // The router is made from the table; axum panics on a path it cannot serve or that is there twice.
    drop(routes());
    let listed: BTreeSet<_> =
        table::routes().iter().map(|route| (route.path.to_owned(), route.verb.as_str().to_owned())).collect();
    assert_eq!(listed.len(), table::routes().len(), "a route is listed twice");
    let document = openapi::openapi();
    let mut documented = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (verb, operation) in operations.as_object().unwrap() {
            documented.insert((path.clone(), verb.clone()));
            let in_path = operation["parameters"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|parameter| parameter["in"] == "path");
            assert_eq!(in_path.count(), path.matches('{').count(), "{verb} {path}");
        }
    }
    assert_eq!(documented, listed);
}

#[test]
fn every_reference_in_the_document_leads_somewhere() {
    let document = openapi::openapi();
    let text = document.to_string();
    let references: BTreeSet<_> =
        text.split("\"$ref\":\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(references.contains("/components/schemas/Sandbox"));
    for reference in references {
        assert!(document.pointer(reference).is_some(), "{reference}");
    }
}
