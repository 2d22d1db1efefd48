//! Calls against servers on loopback.

use super::testing::FakeHttp;
use super::*;
use crate::tls::client_certificate::ClientPolicy;
use crate::tls::server::ServerTls;
use crate::tls::testing::Authority;

const MAX: usize = 1000;

fn client(root_ca: Option<PathBuf>, request_timeout: Duration) -> HttpClient {
    HttpClient::new(&HttpClientSettings {
        connect_timeout: Duration::from_secs(2),
        request_timeout,
        root_ca,
        min_version: MinVersion::default(),
    })
    .unwrap()
}

fn patient() -> HttpClient {
    client(None, Duration::from_secs(5))
}

fn endpoint(server: &FakeHttp, path: &str) -> Endpoint {
    Endpoint::http("127.0.0.1", server.address.port(), path).unwrap()
}

#[tokio::test]
async fn a_200_gives_its_body_and_the_request_has_its_head() {
    let server = FakeHttp::start(|_| Some((200, "body".to_owned()))).await;
    let body = patient().get(&endpoint(&server, "/p"), "a=b", MAX).await.unwrap();
    assert_eq!(body, "body");
    let request = &server.requests()[0].to_ascii_lowercase();
    assert!(request.starts_with("get /p?a=b http/1.1\r\n"), "{request}");
    assert!(
        request.contains(&format!("\r\nhost: {}\r\n", server.address)),
        "{request}"
    );
    assert!(
        request.contains("\r\naccept: application/vnd.nsq; version=1.0\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn everything_else_is_an_error_that_keeps_the_query_to_itself() {
    let server = FakeHttp::start(|request| match request {
        _ if request.contains("/slow") => None,
        _ if request.contains("/large") => Some((200, "x".repeat(MAX + 1))),
        _ => Some((500, "secret".to_owned())),
    })
    .await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = Endpoint::http("127.0.0.1", closed.local_addr().unwrap().port(), "/").unwrap();
    drop(closed);
    let hasty = client(None, Duration::from_millis(200));
    let mut texts = Vec::new();
    for (client, endpoint) in [
        (patient(), endpoint(&server, "/failing")),
        (patient(), endpoint(&server, "/large")),
        (hasty, endpoint(&server, "/slow")),
        (patient(), nobody),
        (
            patient(),
            format!("http://user:secret@{}/u", server.address)
                .parse()
                .unwrap(),
        ),
    ] {
        let error = client.get(&endpoint, "key=secret", MAX).await.unwrap_err();
        texts.push(error.to_string());
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    }
    assert!(
        texts[0].ends_with("/failing: status 500 Internal Server Error"),
        "{texts:?}"
    );
    assert!(texts[1].ends_with("answer of more than 1000 bytes"), "{texts:?}");
    assert!(texts[2].ends_with("no answer within 200ms"), "{texts:?}");
    assert!(texts[3].contains("onnect"), "{texts:?}");
}

#[tokio::test]
async fn a_403_with_an_https_port_is_asked_again_over_https() {
    let authority = Authority::new();
    let settings = authority.server_settings(&authority.issue("server"), ClientPolicy::None);
    let tls = ServerTls::load(settings).unwrap().config();
    let secure = FakeHttp::start_with(Some(tls), |_| Some((200, "secure".to_owned()))).await;
    let port = secure.address.port();
    let plain = FakeHttp::start(move |_| {
        let body = format!(r#"{{"message": "TLS_REQUIRED", "https_port": {port}}}"#);
        Some((403, body))
    })
    .await;
    let trusting = client(Some(authority.file()), Duration::from_secs(5));
    let body = trusting
        .get(&endpoint(&plain, "/auth"), "a=b", MAX)
        .await
        .unwrap();
    assert_eq!(body, "secure");
    assert!(secure.requests()[0].starts_with("GET /auth?a=b "));

    let distrusting = client(Some(Authority::new().file()), Duration::from_secs(5));
    let error = distrusting
        .get(&endpoint(&plain, "/auth"), "a=b", MAX)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    assert_eq!(secure.requests().len(), 1);
}

#[tokio::test]
async fn a_403_without_a_port_is_a_refusal() {
    let server = FakeHttp::start(|_| Some((403, "{}".to_owned()))).await;
    let error = patient().get(&endpoint(&server, "/"), "", MAX).await.unwrap_err();
    assert!(matches!(error.cause, HttpCause::Status(StatusCode::FORBIDDEN)));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn endpoints_are_http_or_https() {
    for wrong in ["", "host:1/x", "ftp://host/", "http://", "http://a b/", "/path"] {
        assert!(wrong.parse::<Endpoint>().is_err(), "{wrong:?}");
    }
    let with_query = |url: &str, query| {
        url.parse::<Endpoint>()
            .unwrap()
            .with_query(query)
            .unwrap()
            .to_string()
    };
    assert_eq!(with_query("http://h", "a=b"), "http://h/?a=b");
    assert_eq!(with_query("http://h:1/p?x=y", "a=b"), "http://h:1/p?x=y&a=b");
    assert_eq!(with_query("https://h/p", ""), "https://h/p");
    let six = Endpoint::http("::1", 80, "/p").unwrap();
    assert_eq!(six.to_string(), "http://[::1]:80/p");
    assert_eq!(
        six.insisted_on(br#"{"https_port":81}"#).unwrap().to_string(),
        "https://[::1]:81/p"
    );
    assert_eq!(six.insisted_on(b"not JSON"), None);
    let secure: Endpoint = "https://h/".parse().unwrap();
    assert_eq!(secure.insisted_on(br#"{"https_port":81}"#), None);
}

#[test]
fn queries_are_encoded_as_go_does_it() {
    let mut query = String::new();
    add_to_query(&mut query, "a", b"aZ9-_.~");
    add_to_query(&mut query, "b", b" *+/&=%\xff\n");
    assert_eq!(query, "a=aZ9-_.~&b=+%2A%2B%2F%26%3D%25%FF%0A");
}
