//! The parameters of a call: by name, or by position in the order that the method defines.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::rpc::Fault;

/// Parameters as the client wrote them: no number is rounded, no key dropped.
#[derive(Debug, Clone)]
pub struct Params(Option<Box<RawValue>>);

impl Params {
    /// `None`: neither an object nor an array.
    pub(crate) fn new(written: Option<&RawValue>) -> Option<Self> {
        match written.map(RawValue::get).map(str::as_bytes) {
            None | Some([b'{' | b'[', ..]) => Some(Self(written.map(ToOwned::to_owned))),
            Some(_) => None,
        }
    }

    /// The JSON as the client wrote it.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.as_ref().map_or("{}", |written| written.get())
    }

    /// Parameters by name. An unknown name, or more values than `names`, is an error.
    pub fn named(&self, names: &[&str]) -> Result<NamedParams, Fault> {
        let wrong = |error: serde_json::Error| Fault::invalid_params(error.to_string());
        let text = self.text();
        if !text.starts_with('[') {
            let given: BTreeMap<String, Box<RawValue>> =
                serde_json::from_str(text).map_err(wrong)?;
            return match given.keys().find(|name| !names.contains(&name.as_str())) {
                Some(strange) => Err(Fault::invalid_params(format!(
                    "unknown parameter {strange}; expected: {}",
                    names.join(", ")
                ))),
                None => Ok(NamedParams(given)),
            };
        }
        let given: Vec<Box<RawValue>> = serde_json::from_str(text).map_err(wrong)?;
        if given.len() > names.len() {
            let most = names.len();
            return Err(Fault::invalid_params(format!("at most {most} parameters are allowed")));
        }
        let names = names.iter().map(|name| (*name).to_owned());
        Ok(NamedParams(names.zip(given).collect()))
    }
}

/// Parameters by name. `null` counts as missing.
#[derive(Debug, Clone)]
pub struct NamedParams(BTreeMap<String, Box<RawValue>>);

impl NamedParams {
    /// The value of a parameter that must be present.
    pub fn required<T: DeserializeOwned>(&self, name: &str) -> Result<T, Fault> {
        self.optional(name)?
            .ok_or_else(|| Fault::invalid_params(format!("the parameter {name} is missing")))
    }

    /// The value of a parameter, or `None` if it is missing.
    pub fn optional<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Fault> {
        let Some(written) = self.raw(name) else { return Ok(None) };
        serde_json::from_str(written)
            .map(Some)
            .map_err(|error| Fault::invalid_params(format!("the parameter {name}: {error}")))
    }

    /// The value of a parameter, or its type's default if it is missing.
    pub fn or_default<T: DeserializeOwned + Default>(&self, name: &str) -> Result<T, Fault> {
        Ok(self.optional(name)?.unwrap_or_default())
    }

    /// The JSON of a parameter, as the client wrote it.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|written| written.get()).filter(|written| *written != "null")
    }
}
