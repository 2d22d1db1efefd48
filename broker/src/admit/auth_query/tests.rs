//! Questions to auth servers on loopback.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::admit::grant::Permission;
use crate::http_client::HttpClientSettings;
use crate::http_client::testing::FakeHttp;
use crate::tls::MinVersion;

const GOOD: &str = r#"{"ttl":60,"identity":"id","authorizations":[{"topic":"t","channels":[".*"],"permissions":["publish"]}]}"#;

fn query(addresses: &[String]) -> AuthQuery {
    let client = HttpClient::new(&HttpClientSettings {
        connect_timeout: Duration::from_secs(2),
        request_timeout: Duration::from_secs(5),
        root_ca: None,
        min_version: MinVersion::default(),
    })
    .unwrap();
    AuthQuery::new(addresses, client, Clock::start())
        .unwrap()
        .unwrap()
}

async fn server(body: &'static str) -> FakeHttp {
    FakeHttp::start(move |_| Some((200, body.to_owned()))).await
}

fn applicant() -> Applicant<'static> {
    Applicant {
        remote_ip: Some("127.0.0.1".parse().unwrap()),
        tls: false,
        common_name: "",
    }
}

async fn outcome(addresses: &[String]) -> Result<Credential, AuthRefusal> {
    query(addresses)
        .authenticate(Secret::new(*b"s"), &applicant())
        .await
}

#[tokio::test]
async fn the_question_has_its_documented_form() {
    let server = server(GOOD).await;
    let credential = outcome(&[server.address.to_string()]).await.unwrap();
    assert_eq!(credential.grants().identity(), "id");
    assert!(credential.grants().allows(Permission::Publish, "t", ""));
    let request = &server.requests()[0];
    assert!(
        request.starts_with("GET /auth?common_name=&remote_ip=127.0.0.1&secret=s&tls=false HTTP/1.1\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn a_whole_url_is_asked_as_it_is() {
    let server = server(GOOD).await;
    let applicant = Applicant {
        remote_ip: None,
        tls: true,
        common_name: "a b",
    };
    query(&[format!("http://{}/v1/check", server.address)])
        .authenticate(Secret::new(*b"\xffx&y"), &applicant)
        .await
        .unwrap();
    let request = &server.requests()[0];
    assert!(
        request.starts_with("GET /v1/check?common_name=a+b&remote_ip=&secret=%FFx%26y&tls=true HTTP/1.1\r\n"),
        "{request}"
    );
}

#[test]
fn an_ipv4_client_of_a_dual_stack_listener_has_its_ipv4_address() {
    let applicant = Applicant {
        remote_ip: Some("::ffff:10.0.0.1".parse().unwrap()),
        ..applicant()
    };
    assert!(query_string(&Secret::new(*b"s"), &applicant).contains("remote_ip=10.0.0.1&"));
}

#[tokio::test]
async fn an_unusable_answer_fails_and_the_next_server_is_asked() {
    let unusable = [
        (500, GOOD),
        (200, "nonsense"),
        (200, r#"{"ttl":0}"#),
        (
            200,
            r#"{"ttl":1,"authorizations":[{"topic":"t","channels":[],"permissions":["x"]}]}"#,
        ),
    ];
    for (status, body) in unusable {
        let bad = FakeHttp::start(move |_| Some((status, body.to_owned()))).await;
        let bad_address = bad.address.to_string();
        assert_eq!(
            outcome(std::slice::from_ref(&bad_address)).await.unwrap_err(),
            AuthRefusal::Failed
        );
        let good = server(GOOD).await;
        let addresses = [bad_address.clone(), good.address.to_string(), bad_address];
        for _ in 0..10 {
            outcome(&addresses).await.unwrap();
        }
    }
}

#[tokio::test]
async fn the_load_spreads_over_the_servers() {
    let (one, other) = (server(GOOD).await, server(GOOD).await);
    let addresses = [one.address.to_string(), other.address.to_string()];
    let mut asked = 0;
    while one.requests().is_empty() || other.requests().is_empty() {
        outcome(&addresses).await.unwrap();
        asked += 1;
        assert!(asked < 200, "always the same server");
    }
    assert_eq!(one.requests().len() + other.requests().len(), asked);
}

#[tokio::test]
async fn an_answer_that_grants_nothing_has_its_own_refusal() {
    let server = server(r#"{"ttl":60,"authorizations":[]}"#).await;
    let refusal = outcome(&[server.address.to_string()]).await.unwrap_err();
    assert_eq!(
        format!("{} {refusal}", refusal.code()),
        "E_UNAUTHORIZED AUTH no authorizations found"
    );
}

#[tokio::test]
async fn a_refresh_replaces_the_grants_or_leaves_them() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let server = FakeHttp::start(move |_| match count.fetch_add(1, Ordering::Relaxed) {
        0 => Some((200, GOOD.to_owned())),
        1 => Some((500, String::new())),
        _ => Some((200, r#"{"ttl":60}"#.to_owned())),
    })
    .await;
    let query = query(&[server.address.to_string()]);
    let mut credential = query
        .authenticate(Secret::new(*b"s"), &applicant())
        .await
        .unwrap();
    assert_eq!(
        query.refresh(&mut credential, &applicant()).await,
        Err(AuthRefusal::Failed)
    );
    assert_eq!(credential.grants().permission_count(), 1);
    assert_eq!(query.refresh(&mut credential, &applicant()).await, Ok(()));
    assert_eq!(credential.grants().permission_count(), 0);
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    assert!(server.requests()[2].contains("&secret=s&"));
}

#[test]
fn no_address_means_no_auth_and_a_broken_one_is_told() {
    let client = query(&["h:1".to_owned()]).client;
    let build = |addresses: &[String]| AuthQuery::new(addresses, client.clone(), Clock::start());
    assert!(build(&[]).unwrap().is_none());
    assert!(build(&["ftp://h/".to_owned()]).is_err());
    assert!(build(&["a b".to_owned()]).is_err());
}

#[test]
fn a_secret_is_not_shown() {
    assert_eq!(format!("{:?}", Secret::new(*b"s3cret")), "Secret(..)");
}
