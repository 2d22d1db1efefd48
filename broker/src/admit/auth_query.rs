//! Duty: asks the auth servers what a secret grants (nsq-tcp 5.2). Comes in: a secret and who shows it. Goes
//! out: grants. Must not know commands. The secret appears in no log, error or debug text.

use std::fmt;
use std::net::IpAddr;

use super::AuthRefusal;
use super::grant::{GrantError, Grants};
use crate::clock::Clock;
use crate::http_client::{BadEndpoint, Endpoint, HttpClient, HttpError, add_to_query};

#[cfg(test)]
mod tests;

/// The auth servers of this node. Cheap to share.
#[derive(Debug)]
pub struct AuthQuery {
    endpoints: Vec<Endpoint>,
    client: HttpClient,
    clock: Clock,
}

/// The body of an AUTH.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<[u8]>);

/// Who shows a secret, as the auth server is told.
#[derive(Clone, Copy, Debug)]
pub struct Applicant<'a> {
    /// Address of the client, `None` on a Unix socket.
    pub remote_ip: Option<IpAddr>,
    /// Whether the connection is TLS now.
    pub tls: bool,
    /// Common name of the client's certificate, else empty.
    pub common_name: &'a str,
}

/// What a connection is after a successful AUTH: the secret to ask again with, and what it grants for now.
#[derive(Clone, Debug)]
pub struct Credential {
    secret: Secret,
    grants: Grants,
}

/// Why one auth server gave no grants.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("{endpoint}: {source}")]
    Answer { endpoint: Endpoint, source: GrantError },
}

impl AuthQuery {
    /// For the values of `--auth-http-address`: `host:port`, asked at `/auth`, or a whole URL. `None` when there
    /// are none: AUTH is off.
    ///
    /// # Errors
    /// When an address is neither.
    pub fn new(addresses: &[String], client: HttpClient, clock: Clock) -> Result<Option<Self>, BadEndpoint> {
        let endpoints = addresses
            .iter()
            .map(|address| {
                if address.contains("://") {
                    address.parse()
                } else {
                    format!("http://{address}/auth").parse()
                }
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok((!endpoints.is_empty()).then_some(Self {
            endpoints,
            client,
            clock,
        }))
    }

    /// Serves an AUTH. Cancel safe.
    ///
    /// # Errors
    /// [`AuthRefusal::Failed`] when no server gives a usable answer, [`AuthRefusal::NoAuthorizations`] when the
    /// answer grants nothing.
    pub async fn authenticate(
        &self,
        secret: Secret,
        applicant: &Applicant<'_>,
    ) -> Result<Credential, AuthRefusal> {
        let grants = self.ask(&secret, applicant).await?;
        if grants.permission_count() == 0 {
            return Err(AuthRefusal::NoAuthorizations);
        }
        Ok(Credential { secret, grants })
    }

    /// Asks again for a credential whose grants have expired; they are replaced, also by fewer or none. Cancel
    /// safe: the credential changes at the end or not at all.
    ///
    /// # Errors
    /// [`AuthRefusal::Failed`] when no server gives a usable answer.
    pub async fn refresh(
        &self,
        credential: &mut Credential,
        applicant: &Applicant<'_>,
    ) -> Result<(), AuthRefusal> {
        credential.grants = self.ask(&credential.secret, applicant).await?;
        Ok(())
    }

    /// Starts at any server, so that the load spreads, and takes the first usable answer.
    async fn ask(&self, secret: &Secret, applicant: &Applicant<'_>) -> Result<Grants, AuthRefusal> {
        let query = query_string(secret, applicant);
        let start = fastrand::usize(..self.endpoints.len());
        let (later, first) = self.endpoints.split_at(start);
        for endpoint in first.iter().chain(later) {
            match self.ask_one(endpoint, &query).await {
                Ok(grants) => return Ok(grants),
                Err(error) => tracing::warn!(%error, "auth server gave no usable answer"),
            }
        }
        Err(AuthRefusal::Failed)
    }

    async fn ask_one(&self, endpoint: &Endpoint, query: &str) -> Result<Grants, AskError> {
        let body = self.client.get(endpoint, query, ANSWER_MAX).await?;
        Grants::parse(&body, self.clock.now()).map_err(|source| AskError::Answer {
            endpoint: endpoint.clone(),
            source,
        })
    }
}

impl Credential {
    /// What the connection may do.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }
}

impl Secret {
    /// Wraps the body of an AUTH.
    pub fn new(body: impl Into<Box<[u8]>>) -> Self {
        Self(body.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The keys are in alphabetical order, as auth servers' tests may expect.
fn query_string(secret: &Secret, applicant: &Applicant<'_>) -> String {
    // A client of a dual-stack listener is known by its IPv4 address.
    let remote_ip = applicant
        .remote_ip
        .map(|ip| ip.to_canonical().to_string())
        .unwrap_or_default();
    let tls = if applicant.tls { "true" } else { "false" };
    let mut query = String::new();
    add_to_query(&mut query, "common_name", applicant.common_name.as_bytes());
    add_to_query(&mut query, "remote_ip", remote_ip.as_bytes());
    add_to_query(&mut query, "secret", &secret.0);
    add_to_query(&mut query, "tls", tls.as_bytes());
    query
}

/// Longest answer of an auth server, in bytes.
const ANSWER_MAX: usize = 4 * 1024 * 1024;
