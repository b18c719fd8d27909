//! What may stand in `zeno.yaml`, for editors.

pub(super) fn page() -> String {
    serde_json::to_string_pretty(&model::config::schema()).expect("a schema is plain data") + "\n"
}
