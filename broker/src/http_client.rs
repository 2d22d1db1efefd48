//! Duty: GET over HTTP and HTTPS, for questions to auth servers and lookupds. Comes in: an endpoint, a query
//! string. Goes out: the body of a 200, or why there is none. Must not know what is asked. What follows the `?`
//! may be secret: it appears in no error, log or debug text.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::header::ACCEPT;
use hyper::http::uri::{Authority, InvalidUri, InvalidUriParts, PathAndQuery, Scheme};
use hyper::{Request, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use rustls::RootCertStore;

use crate::tls::{MinVersion, TlsError, trust};

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

/// How outgoing calls are made.
#[derive(Clone, Debug)]
pub struct HttpClientSettings {
    /// Longest time to a connection (`--http-client-connect-timeout`, 2 s in stock nsqd).
    pub connect_timeout: Duration,
    /// Longest time from the start of a call to the end of its answer (`--http-client-request-timeout`, 5 s).
    pub request_timeout: Duration,
    /// PEM file of the authorities to trust, the system's if `None` (`--tls-root-ca-file`).
    pub root_ca: Option<PathBuf>,
    /// Lowest TLS version (`--tls-min-version`).
    pub min_version: MinVersion,
}

/// Makes the calls, each on a connection of its own. Cheap to copy.
#[derive(Clone, Debug)]
pub struct HttpClient {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    request_timeout: Duration,
}

/// What is called: a URL of scheme http or https. Shown without user, password and query.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(Uri);

/// Text that is no URL of scheme http or https.
#[derive(Debug, thiserror::Error)]
#[error("not a usable http or https address: {0}")]
pub struct BadEndpoint(String);

/// A call without a usable answer.
#[derive(Debug, thiserror::Error)]
#[error("GET {endpoint}: {cause}")]
pub struct HttpError {
    /// What was called.
    pub endpoint: Endpoint,
    /// What went wrong.
    pub cause: HttpCause,
}

/// What went wrong in a call.
#[derive(Debug, thiserror::Error)]
pub enum HttpCause {
    /// The query cannot be part of a URL.
    #[error("the URL cannot be built")]
    Url,
    /// No connection, or it broke. The text names the causes.
    #[error("{0}")]
    Transport(String),
    /// The answer was not complete in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// An answer that is not 200.
    #[error("status {0}")]
    Status(StatusCode),
    /// An answer of more bytes than the caller takes.
    #[error("answer of more than {0} bytes")]
    TooLarge(usize),
}

impl HttpClient {
    /// A client that trusts the authorities of `settings`. Blocks on the disk to read them. A system without any
    /// is no error: plain HTTP works there, and HTTPS answers are not trusted.
    ///
    /// # Errors
    /// When the authorities' file is of no use.
    pub fn new(settings: &HttpClientSettings) -> Result<Self, TlsError> {
        let roots = match trust::roots(settings.root_ca.as_deref()) {
            Err(TlsError::NoSystemAuthorities) => RootCertStore::empty(),
            roots => roots?,
        };
        let tls = trust::client_config(roots, settings.min_version)?;
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(settings.connect_timeout));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            // A kept connection may be closed by the other side just as it is used again, and calls are rare.
            .pool_max_idle_per_host(0)
            .build(connector);
        Ok(Self {
            client,
            request_timeout: settings.request_timeout,
        })
    }

    /// GETs `endpoint` with `query` (already encoded, may be empty) and answers the body of a 200. A 403 over
    /// plain HTTP whose body has an `https_port` is asked again over HTTPS at that port, as a node that insists
    /// on TLS demands (nsq-tcp 5.2). Redirects are not followed.
    ///
    /// Cancel safe: a dropped call just goes unanswered.
    ///
    /// # Errors
    /// When no 200 with at most `max_body` bytes came in time.
    pub async fn get(&self, endpoint: &Endpoint, query: &str, max_body: usize) -> Result<Bytes, HttpError> {
        let (mut status, mut body) = self.call(endpoint, query, max_body).await?;
        let mut asked = endpoint.clone();
        if status == StatusCode::FORBIDDEN
            && let Some(secure) = endpoint.insisted_on(&body)
        {
            (status, body) = self.call(&secure, query, max_body).await?;
            asked = secure;
        }
        if status == StatusCode::OK {
            return Ok(body);
        }
        Err(HttpError {
            endpoint: asked,
            cause: HttpCause::Status(status),
        })
    }

    async fn call(
        &self,
        endpoint: &Endpoint,
        query: &str,
        max_body: usize,
    ) -> Result<(StatusCode, Bytes), HttpError> {
        let exchange = async {
            let uri = endpoint.with_query(query).map_err(|_| HttpCause::Url)?;
            let request = Request::get(uri)
                .header(ACCEPT, ACCEPT_NSQ)
                .body(Empty::new())
                .map_err(|_| HttpCause::Url)?;
            let response = self
                .client
                .request(request)
                .await
                .map_err(|error| HttpCause::Transport(chain(&error)))?;
            let (head, body) = response.into_parts();
            match Limited::new(body, max_body).collect().await {
                Ok(body) => Ok((head.status, body.to_bytes())),
                Err(error) if error.is::<LengthLimitError>() => Err(HttpCause::TooLarge(max_body)),
                Err(error) => Err(HttpCause::Transport(chain(&*error))),
            }
        };
        tokio::time::timeout(self.request_timeout, exchange)
            .await
            .unwrap_or(Err(HttpCause::Timeout(self.request_timeout)))
            .map_err(|cause| HttpError {
                endpoint: endpoint.clone(),
                cause,
            })
    }
}

impl Endpoint {
    /// The endpoint `http://host:port/path`; `host` is a name or an address, without brackets.
    ///
    /// # Errors
    /// When these make no URL.
    pub fn http(host: &str, port: u16, path: &str) -> Result<Self, BadEndpoint> {
        format!("http://{}{path}", host_and_port(host, port)).parse()
    }

    /// The same endpoint over HTTPS at the port that the body of a 403 asks for; `None` when it does not, or
    /// this is HTTPS already.
    fn insisted_on(&self, body: &[u8]) -> Option<Self> {
        #[derive(serde::Deserialize)]
        struct Insistence {
            https_port: u16,
        }
        if self.0.scheme() != Some(&Scheme::HTTP) {
            return None;
        }
        let port = serde_json::from_slice::<Insistence>(body).ok()?.https_port;
        let mut parts = self.0.clone().into_parts();
        parts.scheme = Some(Scheme::HTTPS);
        let host = self.0.host()?.trim_start_matches('[').trim_end_matches(']');
        parts.authority = Some(host_and_port(host, port).parse().ok()?);
        Uri::from_parts(parts).ok().map(Self)
    }

    fn with_query(&self, query: &str) -> Result<Uri, InvalidUriParts> {
        if query.is_empty() {
            return Ok(self.0.clone());
        }
        let path = self.0.path_and_query().map_or("/", PathAndQuery::as_str);
        let join = if self.0.query().is_some() { '&' } else { '?' };
        let mut parts = self.0.clone().into_parts();
        // An impossible path is left to `from_parts` to refuse.
        parts.path_and_query = format!("{path}{join}{query}").parse().ok();
        Uri::from_parts(parts)
    }
}

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    fn from_str(url: &str) -> Result<Self, BadEndpoint> {
        let uri: Uri = url
            .parse()
            .map_err(|error: InvalidUri| BadEndpoint(error.to_string()))?;
        match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS => Ok(Self(uri)),
            _ => Err(BadEndpoint("unknown scheme".to_owned())),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.0.authority().map_or("", Authority::as_str);
        let host_and_port = authority.rsplit('@').next().unwrap_or_default();
        let scheme = self.0.scheme_str().unwrap_or_default();
        write!(f, "{scheme}://{host_and_port}{}", self.0.path())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

/// Appends `key=value` to a query string, encoded as HTML forms are and as Go does it: everything but letters,
/// digits and `-_.~` as `%XX`, a space as `+`.
pub fn add_to_query(query: &mut String, key: &str, value: &[u8]) {
    if !query.is_empty() {
        query.push('&');
    }
    query.push_str(key);
    query.push('=');
    for &byte in value {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                query.push(char::from(byte));
            }
            b' ' => query.push('+'),
            _ => {
                query.push('%');
                query.push(char::from(HEX[usize::from(byte >> 4)]));
                query.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
}

fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// An error and its causes in one line: the outermost alone says as little as "client error".
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// Without it nsqlookupds before 1.0 wrap their answers.
const ACCEPT_NSQ: &str = "application/vnd.nsq; version=1.0";
const HEX: &[u8; 16] = b"0123456789ABCDEF";
