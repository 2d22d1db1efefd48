//! Duty: who may do what, who is asked about it, and how fast anybody may publish.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use nsqx_flags::GoDuration;
use serde::Serialize;

use super::fault::{ConfigFault, Faults};

/// Raw flags of admission.
#[derive(Args, Clone, Debug, Serialize)]
#[command(next_help_heading = "Authentication and flow control")]
pub struct AdmitOptions {
    /// Auth server: host:port, or a full URL; may be given several times
    #[arg(long = "auth-http-address")]
    pub auth_http_addresses: Vec<String>,
    /// Longest time to connect to an auth server or lookupd
    #[arg(long, default_value = "2s")]
    pub http_client_connect_timeout: GoDuration,
    /// Longest time for a whole request to an auth server or lookupd
    #[arg(long, default_value = "5s")]
    pub http_client_request_timeout: GoDuration,
    /// URL of the public keys that JWTs are verified with
    #[arg(long, default_value = "")]
    pub auth_jwks_url: String,
    /// Issuer that a JWT must name; empty is any
    #[arg(long, default_value = "")]
    pub auth_jwt_issuer: String,
    /// Audience that a JWT must name; empty is any
    #[arg(long, default_value = "")]
    pub auth_jwt_audience: String,
    /// HTTP routes that need a credential: off, writes (publishing, message bodies and every change) or all.
    /// When not given: writes with --auth-jwks-url, else off
    #[arg(long)]
    pub http_auth: Option<HttpAuth>,
    /// What ends when a credential does: command (later commands are refused) or connection (it is closed).
    /// When not given: command for an auth server's answers, connection for JWTs
    #[arg(long)]
    pub auth_expiry: Option<AuthExpiry>,
    /// File of the audit records; empty is audit.log in the data path
    #[arg(long, default_value = "")]
    pub audit_log: String,
    /// A publish over its topic's limit waits (slow) or is refused, unless the topic says otherwise
    #[arg(long, default_value = "slow")]
    pub on_rate_limit: OnRateLimit,
    /// Longest time that a publish over its limit waits
    #[arg(long, default_value = "5s")]
    pub rate_limit_max_wait: GoDuration,
}

/// Which HTTP routes need a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HttpAuth {
    /// None, as in stock.
    Off,
    /// Publishing, message bodies and every change.
    Writes,
    /// All but `/ping`, `/livez` and `/readyz`.
    All,
}

/// What ends with a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthExpiry {
    /// Later commands are refused; a subscription lives on, as in stock.
    Command,
    /// The connection is closed.
    Connection,
}

/// What happens to a publish over its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnRateLimit {
    /// Its answer waits.
    Slow,
    /// It fails at once.
    Refuse,
}

/// Checked settings of admission.
#[derive(Clone, Debug)]
pub struct AdmitConfig {
    /// Full URLs of the auth servers, tried in order.
    pub auth_urls: Vec<String>,
    /// Longest time to connect to one.
    pub connect_timeout: Duration,
    /// Longest time for a whole request.
    pub request_timeout: Duration,
    /// How JWTs are verified; `None` = no secret is a JWT.
    pub jwt: Option<JwtConfig>,
    /// HTTP routes that need a credential.
    pub http_auth: HttpAuth,
    /// What ends with a credential; `None` = as its kind says.
    pub expiry: Option<AuthExpiry>,
    /// File of the audit records.
    pub audit_log: PathBuf,
    /// What happens to a publish over its topic's limit.
    pub on_rate_limit: OnRateLimit,
    /// Longest time that a slowed publish waits.
    pub rate_limit_max_wait: Duration,
}

/// How JWTs are verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtConfig {
    /// Where the public keys are.
    pub jwks_url: String,
    /// Required issuer.
    pub issuer: Option<String>,
    /// Required audience.
    pub audience: Option<String>,
}

impl AdmitOptions {
    pub(super) fn resolve(&self, data_path: &Path, faults: &mut Faults) -> AdmitConfig {
        let jwt = self.jwt(faults);
        let http_auth = self.http_auth.unwrap_or(match jwt {
            Some(_) => HttpAuth::Writes,
            None => HttpAuth::Off,
        });
        let has_auth = jwt.is_some() || !self.auth_http_addresses.is_empty();
        match http_auth {
            HttpAuth::Writes if !has_auth => faults.add(ConfigFault::HttpAuthWithoutAuth("writes")),
            HttpAuth::All if !has_auth => faults.add(ConfigFault::HttpAuthWithoutAuth("all")),
            _ => {}
        }
        AdmitConfig {
            auth_urls: self
                .auth_http_addresses
                .iter()
                .map(|address| auth_url(address))
                .collect(),
            connect_timeout: faults.time("http-client-connect-timeout", self.http_client_connect_timeout),
            request_timeout: faults.time("http-client-request-timeout", self.http_client_request_timeout),
            jwt,
            http_auth,
            expiry: self.auth_expiry,
            audit_log: if self.audit_log.is_empty() {
                data_path.join("audit.log")
            } else {
                PathBuf::from(&self.audit_log)
            },
            on_rate_limit: self.on_rate_limit,
            rate_limit_max_wait: faults.time("rate-limit-max-wait", self.rate_limit_max_wait),
        }
    }

    fn jwt(&self, faults: &mut Faults) -> Option<JwtConfig> {
        if self.auth_jwks_url.is_empty() {
            return None;
        }
        if !is_safe_url(&self.auth_jwks_url) {
            faults.add(ConfigFault::JwksUrl);
        }
        let named = |text: &String| (!text.is_empty()).then(|| text.clone());
        Some(JwtConfig {
            jwks_url: self.auth_jwks_url.clone(),
            issuer: named(&self.auth_jwt_issuer),
            audience: named(&self.auth_jwt_audience),
        })
    }
}

fn auth_url(address: &str) -> String {
    if address.contains("://") {
        address.to_owned()
    } else {
        format!("http://{address}/auth")
    }
}

/// https anywhere, http only where nobody else can listen in.
fn is_safe_url(url: &str) -> bool {
    if url.starts_with("https://") {
        return true;
    }
    let Some(rest) = url.strip_prefix("http://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host = match authority.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or(bracketed),
        None => authority.split(':').next().unwrap_or(authority),
    };
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_auth_server_is_a_host_or_a_url() {
        assert_eq!(auth_url("auth:4180"), "http://auth:4180/auth");
        assert_eq!(auth_url("https://auth/check"), "https://auth/check");
    }

    #[test]
    fn keys_come_over_https_or_loopback_only() {
        for url in [
            "https://auth.example/jwks",
            "http://127.0.0.1:4180/jwks",
            "http://[::1]:4180/jwks",
            "http://localhost/jwks",
        ] {
            assert!(is_safe_url(url), "{url}");
        }
        for url in [
            "http://auth.example/jwks",
            "http://127.0.0.1.example/jwks",
            "http://localhost@evil/jwks",
            "ftp://127.0.0.1/jwks",
            "",
        ] {
            assert!(!is_safe_url(url), "{url}");
        }
    }
}
