//! Duty: which route a method and a path mean, by the rules of stock's router (nsq-http 1.1). A table and a decoded
//! path come in, a route or a [`Miss`] goes out. Must not know what routes do.

use std::fmt::Write;

use axum::http::Method;

use super::style::Style;

/// One line of the table.
#[derive(Debug)]
pub(super) struct Route<A: 'static> {
    pub(super) method: Method,
    /// A whole path; a last segment that starts with `:` stands for any one segment.
    pub(super) path: &'static str,
    pub(super) style: Style,
    /// Routes of every message are not logged.
    pub(super) logged: bool,
    pub(super) action: A,
}

/// Why there is no route.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Miss {
    /// There is one at another spelling of the path.
    Redirect(String),
    /// The methods of the path were asked for.
    Options(String),
    /// There are only routes of other methods.
    NotAllowed(String),
    /// There is nothing.
    NotFound,
}

impl<A> PartialEq for Route<A> {
    fn eq(&self, other: &Self) -> bool {
        self.method == other.method && self.path == other.path
    }
}

impl<A> Eq for Route<A> {}

/// Looks up the route of `method` at `path`; also answers the segment that its last one stands for.
pub(super) fn find<'r, 'p, A>(
    routes: &'r [Route<A>],
    method: &Method,
    path: &'p str,
) -> Result<(&'r Route<A>, &'p str), Miss> {
    let of_method = || routes.iter().filter(|route| route.method == *method);
    let exact = of_method().find_map(|route| Some((route, segment(route.path, path)?)));
    if let Some(found) = exact {
        return Ok(found);
    }
    let cleaned = clean(path);
    if let Some(target) = of_method().find_map(|route| respell(route.path, &cleaned)) {
        return Err(Miss::Redirect(target));
    }
    let mut allowed: Vec<_> = routes
        .iter()
        .filter(|route| segment(route.path, path).is_some())
        .map(|route| route.method.as_str())
        .collect();
    if allowed.is_empty() {
        return Err(Miss::NotFound);
    }
    allowed.push("OPTIONS");
    allowed.sort_unstable();
    let allowed = allowed.join(", ");
    Err(if *method == Method::OPTIONS {
        Miss::Options(allowed)
    } else {
        Miss::NotAllowed(allowed)
    })
}

/// The segment that the last one of `pattern` stands for (empty when it stands for itself), if `path` fits.
fn segment<'p>(pattern: &str, path: &'p str) -> Option<&'p str> {
    match pattern.split_once(':') {
        None => (path == pattern).then_some(""),
        Some((start, _)) => path
            .strip_prefix(start)
            .filter(|rest| !rest.is_empty() && !rest.contains('/')),
    }
}

/// The right spelling of `path` if it differs from `pattern` by case and by its last slash only.
fn respell(pattern: &str, path: &str) -> Option<String> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let Some((start, _)) = pattern.split_once(':') else {
        let fits = path.eq_ignore_ascii_case(pattern.strip_suffix('/').unwrap_or(pattern));
        return fits.then(|| pattern.to_owned());
    };
    let (head, rest) = path.split_at_checked(start.len())?;
    let fits = head.eq_ignore_ascii_case(start) && !rest.is_empty() && !rest.contains('/');
    fits.then(|| format!("{start}{}", escape(rest)))
}

/// `path` without empty, `.` and `..` segments.
fn clean(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

/// `segment` as it may stand in a URL.
fn escape(segment: &str) -> String {
    let mut out = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+:=@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn route(method: Method, path: &'static str) -> Route<()> {
        Route {
            method,
            path,
            style: Style::V1,
            logged: true,
            action: (),
        }
    }

    const ROUTES: [Route<()>; 6] = [
        route(Method::GET, "/ping"),
        route(Method::POST, "/topic/create"),
        route(Method::PUT, "/config/:opt"),
        route(Method::GET, "/config/:opt"),
        route(Method::GET, "/debug/pprof/"),
        route(Method::POST, "/ping"),
    ];

    fn redirect(method: Method, path: &str) -> Option<String> {
        match find(&ROUTES, &method, path) {
            Err(Miss::Redirect(target)) => Some(target),
            _ => None,
        }
    }

    #[test]
    fn a_parameter_is_one_segment() {
        assert_eq!(find(&ROUTES, &Method::GET, "/config/id"), Ok((&ROUTES[3], "id")));
        for path in ["/config", "/config/", "/config/a/b", "/", ""] {
            assert_eq!(find(&ROUTES, &Method::GET, path), Err(Miss::NotFound), "{path}");
        }
    }

    #[test]
    fn h_33_h_34_allowed_methods_are_sorted_and_name_options() {
        let get_and_put = "GET, OPTIONS, PUT".to_owned();
        assert_eq!(
            find(&ROUTES, &Method::DELETE, "/config/id"),
            Err(Miss::NotAllowed(get_and_put.clone()))
        );
        assert_eq!(
            find(&ROUTES, &Method::OPTIONS, "/config/id"),
            Err(Miss::Options(get_and_put))
        );
        assert_eq!(
            find(&ROUTES, &Method::HEAD, "/ping"),
            Err(Miss::NotAllowed("GET, OPTIONS, POST".to_owned()))
        );
        assert_eq!(find(&ROUTES, &Method::OPTIONS, "/nope"), Err(Miss::NotFound));
    }

    #[test]
    fn h_36_other_spellings_are_redirected_where_the_method_has_a_route() {
        for path in ["/ping/", "/PING", "//ping", "/x/../ping", "/./Ping/"] {
            assert_eq!(redirect(Method::GET, path).as_deref(), Some("/ping"), "{path}");
        }
        assert_eq!(
            redirect(Method::POST, "/topic/Create/").as_deref(),
            Some("/topic/create")
        );
        assert_eq!(
            redirect(Method::GET, "/debug/pprof").as_deref(),
            Some("/debug/pprof/")
        );
        assert_eq!(
            redirect(Method::GET, "/CONFIG/a b/").as_deref(),
            Some("/config/a%20b")
        );
        for method in [Method::HEAD, Method::OPTIONS, Method::DELETE] {
            assert_eq!(find(&ROUTES, &method, "/ping/"), Err(Miss::NotFound));
        }
        assert_eq!(find(&ROUTES, &Method::GET, "/topic/create/"), Err(Miss::NotFound));
    }
}
