//! Changes one setting in the text of a settings file. Everything else in the text stays as it is.

use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};

use super::file::{self, OPTIONS, SettingsFileError};
use super::table::Value;

/// The text with this value for the key, or without the key.
pub(super) fn with_value(
    text: &str,
    key: &str,
    value: Option<&Value>,
) -> Result<String, SettingsFileError> {
    if text.trim().is_empty() {
        return with_value("{\n}\n", key, value);
    }
    // The errors for a person come from the parser that also reads the file.
    file::parse(text.as_bytes())?;
    let wrong =
        |error: jsonc_parser::errors::ParseError| SettingsFileError::Wrong(error.to_string());
    let root = CstRootNode::parse(text, &OPTIONS).map_err(wrong)?;
    let object = root
        .object_value()
        .ok_or_else(|| SettingsFileError::Wrong("it is not a JSON object".to_owned()))?;
    let mut found = named(&object, key);
    // Of several, the last one counts.
    let last = found.pop();
    found.into_iter().for_each(CstObjectProp::remove);
    match (last, value) {
        (Some(property), Some(value)) => property.set_value(input(value)),
        (Some(property), None) => property.remove(),
        (None, Some(value)) => drop(object.append(key, input(value))),
        (None, None) => {}
    }
    Ok(root.to_string())
}

fn named(object: &CstObject, key: &str) -> Vec<CstObjectProp> {
    let has_name = |property: &CstObjectProp| {
        let name = property.name().and_then(|name| name.decoded_value().ok());
        name.is_some_and(|name| name == key)
    };
    object.properties().into_iter().filter(has_name).collect()
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Flag(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::Names(names) => {
            CstInputValue::Array(names.iter().cloned().map(CstInputValue::String).collect())
        }
        Value::Word(word) => CstInputValue::String(word.clone()),
        Value::Durability(durability) => CstInputValue::String(durability.name().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, key: &str, value: &Value) -> String {
        with_value(text, key, Some(value)).unwrap()
    }

    #[test]
    fn only_the_value_changes() {
        let text = "{\n  // days\n  \"archiveDays\": 7, /* a week */\n  \"other\": [1,2 ,3],\n}\n";
        assert_eq!(set(text, "archiveDays", &Value::Number(30)), text.replace('7', "30"));
        assert_eq!(
            set(text, "durability", &Value::Word("off".to_owned())),
            text.replace("[1,2 ,3],\n", "[1,2 ,3],\n  \"durability\": \"off\",\n")
        );
        let names = Value::Names(vec!["out".to_owned(), "a \"b\"".to_owned()]);
        let with_names = set(text, "derivedFolders", &names);
        let read = file::parse(with_names.as_bytes()).unwrap();
        assert_eq!(read["derivedFolders"], serde_json::json!(["out", "a \"b\""]));
        assert!(with_names.starts_with(text.trim_end_matches("}\n").trim_end()), "{with_names}");
    }

    #[test]
    fn a_key_is_removed_with_all_its_repetitions() {
        let text = "{\"archiveDays\": 1, \"kept\": true, \"archiveDays\": 2}";
        assert_eq!(file::parse(text.as_bytes()).unwrap()["archiveDays"], 2);
        let set = set(text, "archiveDays", &Value::Number(3));
        assert_eq!(set.matches("archiveDays").count(), 1, "{set}");
        assert_eq!(file::parse(set.as_bytes()).unwrap()["archiveDays"], 3);
        let unset = with_value(text, "archiveDays", None).unwrap();
        assert_eq!(
            file::parse(unset.as_bytes()).unwrap(),
            file::parse(b"{\"kept\":true}").unwrap()
        );
        assert_eq!(with_value(text, "durability", None).unwrap(), text);
    }

    #[test]
    fn an_empty_file_gets_its_first_key_and_a_damaged_one_is_refused() {
        let one = Value::Number(1);
        for text in ["", "\n", "{}", "{\n}\n"] {
            let set = set(text, "archiveDays", &one);
            assert_eq!(set.trim_end(), "{\n  \"archiveDays\": 1\n}", "{text:?}");
        }
        for text in ["[]", "{ nonsense", "{'a': 1}", "{\"a\": 0x1}", "// only a comment"] {
            assert!(with_value(text, "archiveDays", Some(&one)).is_err(), "{text}");
        }
    }
}
