"""Drives pynsq as ../README.md defines."""

import asyncio
import logging
import signal
import sys
import time

import nsq


async def publish(options):
    writer = await connected_writer(options)
    for number in range(options.int("count")):
        while True:
            answer = await publication(writer.pub, options["topic"], options.body(number))
            if answer == b"OK":
                break
            logging.warning("not acknowledged: %r", answer)
            await asyncio.sleep(RETRY_PAUSE)
        acknowledged(number)
        await asyncio.sleep(options.seconds("pace"))


async def publish_multi(options):
    writer = await connected_writer(options)
    bodies = [options.body(number) for number in range(options.int("count"))]
    expect_ok(await publication(writer.mpub, options["topic"], bodies))
    for number in range(len(bodies)):
        acknowledged(number)


async def publish_deferred(options):
    writer = await connected_writer(options)
    expect_ok(await publication(writer.dpub, options["topic"], options.int("delay"), options.body(0)))
    acknowledged(0)


async def consume(options):
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    source = (
        {"lookupd_http_addresses": [options["lookupd"]]}
        if "lookupd" in options
        else {"nsqd_tcp_addresses": [options["nsqd"]]}
    )
    reader = nsq.Reader(
        topic=options["topic"],
        channel=options["channel"],
        message_handler=handler(options),
        max_in_flight=options.int("max_in_flight", 1),
        lookupd_poll_interval=1,
        max_tries=0,
        max_backoff_duration=MAX_BACKOFF,
        requeue_delay=0,
        sample_rate=options.int("sample_rate"),
        **source,
        **transport(options),
    )
    await stop.wait()
    reader.close()


def handler(options):
    """A handler that finishes the message when it returns True and backs off when it returns False."""
    failures = options.int("fail")

    async def handle(message):
        nonlocal failures
        name = message.body.split(b" ")[0].decode()
        print("message", name, message.attempts, len(message.body), milliseconds_since_start(), flush=True)
        if failures > 0:
            failures -= 1
            return False
        if "requeue" in options and message.attempts == 1:
            message.requeue(backoff=False, time_ms=options.int("requeue"))
            return None
        await hold(message, options)
        return True

    return handle


async def hold(message, options):
    done = time.monotonic() + options.seconds("hold")
    while (left := done - time.monotonic()) > 0:
        await asyncio.sleep(min(left, options.seconds("touch") or left))
        if "touch" in options:
            message.touch()


async def connected_writer(options):
    writer = nsq.Writer([options["nsqd"]], reconnect_interval=RETRY_PAUSE, **transport(options))
    while not writer.conns:
        await asyncio.sleep(RETRY_PAUSE)
    return writer


def publication(send, *arguments):
    """The broker's answer to a command, or the error that came instead."""
    answer = asyncio.get_running_loop().create_future()
    send(*arguments, callback=lambda _connection, data: answer.set_result(data))
    return answer


def expect_ok(answer):
    if answer != b"OK":
        raise RuntimeError(answer)


def transport(options):
    compression = options.get("compression")
    settings = {"snappy": compression == "snappy", "deflate": compression == "deflate"}
    if "tls" in options:
        settings |= {"tls_v1": True, "tls_options": {"ca_certs": options["tls"]}}
    if "auth" in options:
        settings["auth_secret"] = options["auth"]
    return settings


def acknowledged(number):
    print(f"acknowledged m{number}", flush=True)


def milliseconds_since_start():
    return round((time.monotonic() - STARTED) * 1000)


class Options(dict):
    """The arguments name=value."""

    def __init__(self, arguments):
        super().__init__(argument.split("=", 1) for argument in arguments)

    def int(self, name, otherwise=0):
        return int(self.get(name, otherwise))

    def seconds(self, name):
        return self.int(name) / 1000

    def body(self, number):
        name = f"m{number}"
        return (name if "size" not in self else f"{name} ".ljust(self.int("size"), ".")).encode()


VERBS = {verb.__name__: verb for verb in (publish, publish_multi, publish_deferred, consume)}
STARTED = time.monotonic()
RETRY_PAUSE = 0.05
# A fortieth of it is the first pause of pynsq's backoff, about a second.
MAX_BACKOFF = 32

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(VERBS[sys.argv[1]](Options(sys.argv[2:])))
