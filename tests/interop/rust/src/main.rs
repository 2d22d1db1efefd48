//! Drives tokio-nsq as `../README.md` defines.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::BufReader;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, anyhow, bail};
use rustls::ClientConfig;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;
use tokio_nsq::{
    NSQChannel, NSQConfigShared, NSQConfigSharedCompression, NSQConfigSharedTLS, NSQConsumer,
    NSQConsumerConfig, NSQConsumerConfigSources, NSQConsumerLookupConfig, NSQDeflateLevel, NSQEvent,
    NSQMessage, NSQProducer, NSQProducerConfig, NSQRequeueDelay, NSQSampleRate, NSQTopic,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let started = Instant::now();
    env_logger::Builder::new()
        .filter_level(log::LevelFilter::Info)
        .init();
    let mut arguments = std::env::args().skip(1);
    let verb = arguments.next().context("no verb")?;
    let options = Options::parse(arguments)?;
    match verb.as_str() {
        "publish" => publish(&options).await,
        "publish_multi" => publish_multi(&options).await,
        "publish_deferred" => publish_deferred(&options).await,
        "consume" => consume(options, started).await,
        _ => bail!("no verb {verb}"),
    }
}

async fn publish(options: &Options) -> Result<(), Error> {
    let topic = options.topic()?;
    let mut producer = producer(options)?;
    let pace = options.milliseconds("pace")?.unwrap_or_default();
    for number in 0..options.count()? {
        let body = options.body(number)?;
        while !published(&mut producer, &topic, &body).await {}
        acknowledged(number);
        sleep(pace).await;
    }
    Ok(())
}

/// A publication fails at once while there is no connection, and is forgotten when the connection ends before
/// the acknowledgement. In both cases the next event is that there is a connection again.
async fn published(producer: &mut NSQProducer, topic: &Arc<NSQTopic>, body: &[u8]) -> bool {
    let queued = producer.publish(topic, body.to_vec()).await;
    let event = producer.consume().await;
    queued.is_ok() && matches!(event, Some(NSQEvent::Ok()))
}

async fn publish_multi(options: &Options) -> Result<(), Error> {
    let mut producer = connected_producer(options).await?;
    let numbers = 0..options.count()?;
    let bodies = numbers.clone().map(|number| options.body(number));
    producer
        .publish_multiple(&options.topic()?, bodies.collect::<Result<_, _>>()?)
        .await?;
    expect_ok(&mut producer).await?;
    numbers.for_each(acknowledged);
    Ok(())
}

async fn publish_deferred(options: &Options) -> Result<(), Error> {
    let mut producer = connected_producer(options).await?;
    let delay = options.number("delay")?.context("no delay")?;
    producer
        .publish_deferred(&options.topic()?, options.body(0)?, delay)
        .await?;
    expect_ok(&mut producer).await?;
    acknowledged(0);
    Ok(())
}

async fn consume(options: Options, started: Instant) -> Result<(), Error> {
    let mut stop = signal(SignalKind::terminate())?;
    let mut consumer = consumer(&options)?;
    let handler = Arc::new(Handler::new(&options, started)?);
    loop {
        tokio::select! {
            _ = stop.recv() => return Ok(()),
            message = consumer.consume_filtered() => {
                let message = message.context("the consumer ended")?;
                let handler = Arc::clone(&handler);
                tokio::spawn(async move { handler.handle(message).await });
            }
        }
    }
}

struct Handler {
    started: Instant,
    requeue: Option<Duration>,
    hold: Duration,
    touch: Option<Duration>,
}

impl Handler {
    fn new(options: &Options, started: Instant) -> Result<Self, Error> {
        Ok(Self {
            started,
            requeue: options.milliseconds("requeue")?,
            hold: options.milliseconds("hold")?.unwrap_or_default(),
            touch: options.milliseconds("touch")?,
        })
    }

    async fn handle(&self, message: NSQMessage) {
        let name = message.body.split(|byte| *byte == b' ').next();
        println!(
            "message {} {} {} {}",
            String::from_utf8_lossy(name.unwrap_or_default()),
            message.attempt,
            message.body.len(),
            self.started.elapsed().as_millis()
        );
        match self.requeue {
            Some(delay) if message.attempt == 1 => {
                message.requeue(NSQRequeueDelay::CustomDelay(delay)).await;
            }
            _ => {
                self.hold(&message).await;
                message.finish().await;
            }
        }
    }

    async fn hold(&self, message: &NSQMessage) {
        let done = Instant::now() + self.hold;
        loop {
            let left = done.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            sleep(self.touch.map_or(left, |touch| touch.min(left))).await;
            if self.touch.is_some() {
                message.touch().await;
            }
        }
    }
}

fn consumer(options: &Options) -> Result<NSQConsumer, Error> {
    let channel = NSQChannel::new(options.text("channel")?).context("channel name")?;
    let sources = match options.get("lookupd") {
        Some(lookupd) => NSQConsumerConfigSources::Lookup(
            NSQConsumerLookupConfig::new()
                .set_addresses(HashSet::from([format!("http://{lookupd}")]))
                .set_poll_interval(RECONNECT_PAUSE),
        ),
        None => NSQConsumerConfigSources::Daemons(vec![options.text("nsqd")?.to_owned()]),
    };
    let mut config = NSQConsumerConfig::new(options.topic()?, channel)
        .set_max_in_flight(options.number("max_in_flight")?.unwrap_or(1))
        .set_sources(sources)
        .set_shared(shared(options)?);
    if let Some(rate) = options.number("sample_rate")? {
        config = config.set_sample_rate(NSQSampleRate::new(rate).context("sample rate")?);
    }
    Ok(config.build())
}

fn producer(options: &Options) -> Result<NSQProducer, Error> {
    Ok(NSQProducerConfig::new(options.text("nsqd")?)
        .set_shared(shared(options)?)
        .build())
}

async fn connected_producer(options: &Options) -> Result<NSQProducer, Error> {
    let mut producer = producer(options)?;
    match producer.consume().await {
        Some(NSQEvent::Healthy()) => Ok(producer),
        other => bail!("instead of a connection: {other:?}"),
    }
}

async fn expect_ok(producer: &mut NSQProducer) -> Result<(), Error> {
    match producer.consume().await {
        Some(NSQEvent::Ok()) => Ok(()),
        other => bail!("instead of an acknowledgement: {other:?}"),
    }
}

fn shared(options: &Options) -> Result<NSQConfigShared, Error> {
    let mut shared = NSQConfigShared::new()
        .set_backoff_max_wait(RECONNECT_PAUSE)
        .set_flush_interval(FLUSH_INTERVAL);
    if let Some(file) = options.get("tls") {
        let mut config = ClientConfig::new();
        config
            .root_store
            .add_pem_file(&mut BufReader::new(File::open(file)?))
            .map_err(|()| anyhow!("no certificates in {file}"))?;
        shared = shared.set_tls(NSQConfigSharedTLS::new("localhost").set_client_config(Arc::new(config)));
    }
    if let Some(compression) = options.get("compression") {
        shared = shared.set_compression(match compression {
            "snappy" => NSQConfigSharedCompression::Snappy,
            "deflate" => NSQConfigSharedCompression::Deflate(NSQDeflateLevel::new(6).context("level")?),
            _ => bail!("no compression {compression}"),
        });
    }
    if let Some(secret) = options.get("auth") {
        shared = shared.set_credentials(secret.as_bytes().to_vec());
    }
    Ok(shared)
}

fn acknowledged(number: usize) {
    println!("acknowledged m{number}");
}

/// The arguments `name=value`.
struct Options(HashMap<String, String>);

impl Options {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, Error> {
        let pairs = arguments.map(|argument| {
            let (name, value) = argument.split_once('=').context(argument.clone())?;
            Ok((name.to_owned(), value.to_owned()))
        });
        pairs.collect::<Result<_, _>>().map(Self)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn text(&self, name: &'static str) -> Result<&str, Error> {
        self.get(name).context(name)
    }

    fn number<N: FromStr<Err: Into<Error>>>(&self, name: &str) -> Result<Option<N>, Error> {
        self.get(name).map(str::parse).transpose().map_err(Into::into)
    }

    fn milliseconds(&self, name: &str) -> Result<Option<Duration>, Error> {
        Ok(self.number(name)?.map(Duration::from_millis))
    }

    fn count(&self) -> Result<usize, Error> {
        self.number("count")?.context("no count")
    }

    fn topic(&self) -> Result<Arc<NSQTopic>, Error> {
        NSQTopic::new(self.text("topic")?).context("topic name")
    }

    fn body(&self, number: usize) -> Result<Vec<u8>, Error> {
        let mut body = format!("m{number}").into_bytes();
        if let Some(size) = self.number("size")? {
            body.push(b' ');
            body.resize(size, b'.');
        }
        Ok(body)
    }
}

const RECONNECT_PAUSE: Duration = Duration::from_secs(1);
/// tokio-nsq sends nothing, acknowledged or not, before this has passed.
const FLUSH_INTERVAL: Duration = Duration::from_millis(5);
