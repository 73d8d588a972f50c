//! Where a model is reached: style, address, name, key. Reads no environment itself.

use std::fmt;
use std::time::Duration;

/// An endpoint of either style.
#[derive(Clone)]
pub struct Endpoint {
    /// The API that it speaks.
    pub style: ApiStyle,
    /// Without the route: `https://api.anthropic.com`, `https://api.openai.com/v1`.
    pub base_url: String,
    /// The model's name.
    pub model: String,
    /// A local server may need none.
    pub key: Option<ApiKey>,
    /// The proxy to use.
    pub proxy: Option<ProxyAddress>,
    /// How often a failed request is retried.
    pub retries: u32,
    /// How long to wait before the first retry, unless the server says so; doubled each time.
    pub first_wait: Duration,
}

/// The API of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiStyle {
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's chat completions.
    OpenAi,
}

/// A key that is sent and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// The address of a proxy. It may hold a password, and is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyAddress {
    /// The URL.
    pub url: String,
    /// Hosts that are reached without it, as `NO_PROXY` lists them.
    pub except: Option<String>,
}

/// Why environment variables describe no endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// They name a server, but no model.
    #[error("no model given for {host}: set TAKEBACK_MODEL or {variable}")]
    NoModel {
        /// The server.
        host: String,
        /// The variable that can name a model.
        variable: &'static str,
    },
}

/// The environment variables of a style, and its public server.
struct Names {
    style: ApiStyle,
    key: &'static str,
    base_url: &'static str,
    model: &'static str,
    public_url: &'static str,
    public_model: &'static str,
}

/// Variables that may hold a key of an endpoint; hidden from the commands that the agent runs.
pub(crate) const SECRET_VARIABLES: [&str; 4] =
    ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_AUTH_TOKEN"];

const NAMES: [Names; 2] = [
    Names {
        style: ApiStyle::Anthropic,
        key: "ANTHROPIC_API_KEY",
        base_url: "ANTHROPIC_BASE_URL",
        model: "ANTHROPIC_MODEL",
        public_url: "https://api.anthropic.com",
        public_model: "claude-sonnet-4-5",
    },
    Names {
        style: ApiStyle::OpenAi,
        key: "OPENAI_API_KEY",
        base_url: "OPENAI_BASE_URL",
        model: "OPENAI_MODEL",
        public_url: "https://api.openai.com/v1",
        public_model: "gpt-4.1",
    },
];

impl Endpoint {
    /// An endpoint without a proxy, with the default retries.
    #[must_use]
    pub fn new(style: ApiStyle, base_url: &str, model: &str, key: Option<ApiKey>) -> Self {
        Self {
            style,
            base_url: base_url.trim_end_matches('/').to_owned(),
            model: model.to_owned(),
            key,
            proxy: None,
            retries: 3,
            first_wait: Duration::from_secs(1),
        }
    }

    /// The endpoint that a set of variables describes, if they name a key or an address:
    /// `ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`, `ANTHROPIC_MODEL`, then the same of `OPENAI`, and
    /// `TAKEBACK_MODEL` before either model. An address that is not the public one needs the name of a
    /// model.
    pub fn from_variables(
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, EndpointError> {
        let get = |name: &str| {
            get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        for names in NAMES {
            let (key, base_url) = (get(names.key), get(names.base_url));
            if key.is_none() && base_url.is_none() {
                continue;
            }
            let is_public = base_url.is_none() || names.style == ApiStyle::Anthropic;
            let base_url = base_url.unwrap_or_else(|| names.public_url.to_owned());
            let model = get("TAKEBACK_MODEL")
                .or_else(|| get(names.model))
                .or_else(|| is_public.then(|| names.public_model.to_owned()));
            let Some(model) = model else {
                let host = host_in(&base_url).to_owned();
                return Err(EndpointError::NoModel { host, variable: names.model });
            };
            let mut endpoint = Self::new(names.style, &base_url, &model, key.map(ApiKey::new));
            endpoint.proxy = proxy_for(&base_url, get);
            return Ok(Some(endpoint));
        }
        Ok(None)
    }

    /// The host, for messages.
    pub(crate) fn host(&self) -> &str {
        host_in(&self.base_url)
    }
}

/// The host of an address, without a password.
fn host_in(base_url: &str) -> &str {
    let (_, rest) = base_url.split_once("://").unwrap_or(("", base_url));
    let authority = rest.split('/').next().unwrap_or(rest);
    authority.rsplit('@').next().unwrap_or(authority)
}

fn proxy_for(base_url: &str, get: impl Fn(&str) -> Option<String>) -> Option<ProxyAddress> {
    let either = |name: &str| get(&name.to_lowercase()).or_else(|| get(name));
    let of_scheme =
        if base_url.starts_with("https:") { either("HTTPS_PROXY") } else { either("HTTP_PROXY") };
    let url = of_scheme.or_else(|| either("ALL_PROXY"))?;
    Some(ProxyAddress { url, except: either("NO_PROXY") })
}

impl ApiKey {
    /// Wraps a key.
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// A text without the key.
    pub(crate) fn redact(&self, text: String) -> String {
        if self.0.is_empty() || !text.contains(&self.0) {
            return text;
        }
        text.replace(&self.0, "[key]")
    }
}

/// Shows neither the key nor the whole address, which may hold a password.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (style, host, model) = (self.style, self.host(), &self.model);
        write!(f, "Endpoint({style:?}, {host}, {model})")
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey")
    }
}

impl fmt::Debug for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProxyAddress")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<Option<Endpoint>, EndpointError> {
        Endpoint::from_variables(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn summary(variables: &[(&str, &str)]) -> Option<(ApiStyle, String, String)> {
        let endpoint = from(variables).unwrap()?;
        Some((endpoint.style, endpoint.base_url, endpoint.model))
    }

    #[test]
    fn variables_make_an_endpoint() {
        let is = |style, url: &str, model: &str| Some((style, url.to_owned(), model.to_owned()));
        assert_eq!(summary(&[]), None);
        assert_eq!(summary(&[("ANTHROPIC_API_KEY", "  "), ("TAKEBACK_MODEL", "m")]), None);
        assert_eq!(
            summary(&[("ANTHROPIC_API_KEY", "k"), ("OPENAI_API_KEY", "k")]),
            is(ApiStyle::Anthropic, "https://api.anthropic.com", "claude-sonnet-4-5")
        );
        assert_eq!(
            summary(&[("OPENAI_API_KEY", "k"), ("OPENAI_MODEL", "a"), ("TAKEBACK_MODEL", "b")]),
            is(ApiStyle::OpenAi, "https://api.openai.com/v1", "b")
        );
        assert_eq!(
            summary(&[("OPENAI_BASE_URL", "http://localhost:1/v1/"), ("OPENAI_MODEL", "llama")]),
            is(ApiStyle::OpenAi, "http://localhost:1/v1", "llama")
        );
        let error = from(&[("OPENAI_BASE_URL", "http://localhost:1")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no model given for localhost:1: set TAKEBACK_MODEL or OPENAI_MODEL"
        );
    }

    #[test]
    fn key_variables_are_secret() {
        assert!(NAMES.iter().all(|names| SECRET_VARIABLES.contains(&names.key)));
    }

    #[test]
    fn neither_key_nor_password_is_shown() {
        let endpoint = from(&[
            ("OPENAI_API_KEY", "sk-secret"),
            ("OPENAI_BASE_URL", "https://me:secret@example.org/v1"),
            ("https_proxy", "http://me:secret@proxy:1"),
            ("TAKEBACK_MODEL", "m"),
        ])
        .unwrap()
        .unwrap();
        let expected = ProxyAddress { url: "http://me:secret@proxy:1".to_owned(), except: None };
        assert_eq!(endpoint.proxy, Some(expected));
        assert_eq!(format!("{endpoint:?}"), "Endpoint(OpenAi, example.org, m)");
        let key = endpoint.key.clone().unwrap();
        assert_eq!(format!("{key:?}, {:?}", endpoint.proxy), "ApiKey, Some(ProxyAddress)");
        assert_eq!(key.redact("it is sk-secret.".to_owned()), "it is [key].");
    }
}
