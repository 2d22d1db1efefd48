//! Duty: everything the HTTP door can refuse, and the one place that maps it to status and code.

use axum::http::StatusCode;

use crate::config::ChangeError;
use crate::desk::DeskError;
use crate::desk::batch::BatchError;

/// A refusal. The code goes to the client; the text explains it, on our own routes to the client too.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HttpError {
    #[error("no such route")]
    NotFound,
    #[error("the route does not take this method")]
    MethodNotAllowed,
    /// Go's server refuses such a path before any route sees it.
    #[error("400 Bad Request")]
    BadPath,
    #[error("query or body cannot be read")]
    InvalidRequest,
    /// The text is for the log only.
    #[error("{0}")]
    Internal(String),
    #[error("message too big")]
    MsgTooBig,
    #[error("body too big")]
    BodyTooBig,
    #[error("message count missing or impossible")]
    BadBody,
    #[error("message cut short, empty or too big")]
    BadMessage,
    #[error("message empty")]
    MsgEmpty,
    #[error("defer is not a number of milliseconds in the allowed range")]
    InvalidDefer,
    #[error("topic going away or disk not writable")]
    Exiting,
    #[error("topic missing")]
    MissingTopic,
    #[error("topic name not valid")]
    InvalidTopic,
    /// As `InvalidTopic`, in the word of the channel routes.
    #[error("topic name not valid")]
    InvalidArgTopic,
    #[error("channel missing")]
    MissingChannel,
    #[error("channel name not valid")]
    InvalidChannel,
    #[error("no such topic")]
    TopicNotFound,
    #[error("no such channel")]
    ChannelNotFound,
    #[error("no such option, or not to be changed")]
    InvalidOption,
    #[error("value not valid")]
    InvalidValue,
    #[error("value empty or too long")]
    ValueLength,
    #[error("NOK - {0}")]
    Unhealthy(String),
    #[error("invalid block rate : strconv.Atoi: parsing {0:?}: invalid syntax")]
    InvalidBlockRate(String),
    #[error("no Go runtime profiles here: profile with perf, and read /metrics")]
    NoProfiles,
    /// A JSON body of our own routes.
    #[error("{0}")]
    InvalidBody(String),
    /// A parameter of our own routes.
    #[error("{0}")]
    InvalidArgument(&'static str),
}

impl HttpError {
    /// Status and code.
    pub(super) fn wire(&self) -> (StatusCode, &'static str) {
        use StatusCode as S;
        match self {
            Self::NotFound | Self::NoProfiles => (S::NOT_FOUND, "NOT_FOUND"),
            Self::MethodNotAllowed => (S::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED"),
            Self::BadPath => (S::BAD_REQUEST, "BAD_REQUEST"),
            Self::InvalidRequest => (S::BAD_REQUEST, "INVALID_REQUEST"),
            Self::Internal(_) => (S::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR"),
            Self::MsgTooBig => (S::PAYLOAD_TOO_LARGE, "MSG_TOO_BIG"),
            Self::BodyTooBig => (S::PAYLOAD_TOO_LARGE, "BODY_TOO_BIG"),
            Self::BadBody => (S::PAYLOAD_TOO_LARGE, "BAD_BODY"),
            Self::BadMessage => (S::PAYLOAD_TOO_LARGE, "BAD_MESSAGE"),
            Self::MsgEmpty => (S::BAD_REQUEST, "MSG_EMPTY"),
            Self::InvalidDefer => (S::BAD_REQUEST, "INVALID_DEFER"),
            Self::Exiting => (S::SERVICE_UNAVAILABLE, "EXITING"),
            Self::MissingTopic => (S::BAD_REQUEST, "MISSING_ARG_TOPIC"),
            Self::InvalidTopic => (S::BAD_REQUEST, "INVALID_TOPIC"),
            Self::InvalidArgTopic => (S::BAD_REQUEST, "INVALID_ARG_TOPIC"),
            Self::MissingChannel => (S::BAD_REQUEST, "MISSING_ARG_CHANNEL"),
            Self::InvalidChannel => (S::BAD_REQUEST, "INVALID_ARG_CHANNEL"),
            Self::TopicNotFound => (S::NOT_FOUND, "TOPIC_NOT_FOUND"),
            Self::ChannelNotFound => (S::NOT_FOUND, "CHANNEL_NOT_FOUND"),
            Self::InvalidOption => (S::BAD_REQUEST, "INVALID_OPTION"),
            Self::InvalidValue => (S::BAD_REQUEST, "INVALID_VALUE"),
            Self::ValueLength => (S::PAYLOAD_TOO_LARGE, "INVALID_VALUE"),
            Self::Unhealthy(_) => (S::INTERNAL_SERVER_ERROR, "UNHEALTHY"),
            Self::InvalidBlockRate(_) => (S::BAD_REQUEST, "INVALID_BLOCK_RATE"),
            Self::InvalidBody(_) => (S::BAD_REQUEST, "INVALID_BODY"),
            Self::InvalidArgument(_) => (S::BAD_REQUEST, "INVALID_ARGUMENT"),
        }
    }
}

impl From<DeskError> for HttpError {
    fn from(error: DeskError) -> Self {
        match error {
            DeskError::TopicNotFound => Self::TopicNotFound,
            DeskError::ChannelNotFound => Self::ChannelNotFound,
            DeskError::Exiting => Self::Exiting,
            DeskError::Failed(text) => Self::Internal(text),
        }
    }
}

impl From<BatchError> for HttpError {
    fn from(error: BatchError) -> Self {
        match error {
            BatchError::MessageTooBig => Self::MsgTooBig,
            BatchError::BodyTooBig => Self::BodyTooBig,
            BatchError::BadCount => Self::BadBody,
            BatchError::BadMessage => Self::BadMessage,
        }
    }
}

impl From<ChangeError> for HttpError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Option => Self::InvalidOption,
            ChangeError::Value => Self::InvalidValue,
        }
    }
}
