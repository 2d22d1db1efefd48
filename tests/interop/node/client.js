// Drives nsqjs as ../README.md defines.
'use strict'

const fs = require('fs')
const {setTimeout: sleep} = require('timers/promises')
const {Reader, Writer} = require('nsqjs')

const RETRY_PAUSE_MS = 50
const RECONNECT_PAUSE_S = 1
// A fortieth of it is the first pause of nsqjs's backoff, about a second.
const MAX_BACKOFF_S = 32

async function publish(options) {
  let writer
  for (let number = 0; number < options.count; number++) {
    for (;;) {
      try {
        writer ??= await connectedWriter(options)
        await acknowledgement((done) => writer.publish(options.topic, body(options, number), done))
        break
      } catch (error) {
        // A Writer that lost its connection stays closed.
        console.error(error)
        writer = undefined
        await sleep(RETRY_PAUSE_MS)
      }
    }
    acknowledged(number)
    await sleep(options.pace ?? 0)
  }
  writer.close()
}

async function publish_multi(options) {
  const writer = await connectedWriter(options)
  const bodies = Array.from({length: options.count}, (_, number) => body(options, number))
  await acknowledgement((done) => writer.publish(options.topic, bodies, done))
  bodies.forEach((_, number) => acknowledged(number))
  writer.close()
}

async function publish_deferred(options) {
  const writer = await connectedWriter(options)
  await acknowledgement((done) => writer.deferPublish(options.topic, [body(options, 0)], options.delay, done))
  acknowledged(0)
  writer.close()
}

async function consume(options) {
  const source = options.lookupd
    ? {lookupdHTTPAddresses: options.lookupd}
    : {nsqdTCPAddresses: options.nsqd}
  const reader = new Reader(options.topic, options.channel, {
    ...source,
    ...transport(options),
    maxInFlight: options.max_in_flight ?? 1,
    sampleRate: options.sample_rate ?? null,
    lookupdPollInterval: RECONNECT_PAUSE_S,
    maxBackoffDuration: MAX_BACKOFF_S,
  })
  reader.on(Reader.MESSAGE, handler(options))
  reader.on(Reader.ERROR, (error) => console.error(error))
  reader.connect()
  await new Promise((stop) => process.once('SIGTERM', stop))
  reader.close()
}

function handler(options) {
  let failures = options.fail ?? 0
  return async (message) => {
    const received = message.body.toString()
    const [name] = received.split(' ')
    console.log('message', name, message.attempts, received.length, Math.round(performance.now()))
    if (failures > 0) {
      failures--
      message.requeue(0, true)
    } else if (options.requeue && message.attempts === 1) {
      message.requeue(options.requeue, false)
    } else {
      await hold(message, options)
      message.finish()
    }
  }
}

async function hold(message, options) {
  const done = performance.now() + (options.hold ?? 0)
  for (let left; (left = done - performance.now()) > 0; ) {
    await sleep(Math.min(left, options.touch ?? left))
    if (options.touch) message.touch()
  }
}

function connectedWriter(options) {
  const [host, port] = options.nsqd.split(':')
  const writer = new Writer(host, Number(port), transport(options))
  return new Promise((resolve, reject) => {
    writer.on(Writer.READY, () => resolve(writer))
    writer.on(Writer.ERROR, reject)
    writer.on(Writer.CLOSED, () => reject(new Error('closed')))
    writer.connect()
  })
}

function acknowledgement(send) {
  return new Promise((resolve, reject) => {
    send((error) => (error ? reject(error) : resolve()))
  })
}

function transport(options) {
  return {
    tls: 'tls' in options,
    ca: options.tls ? fs.readFileSync(options.tls) : null,
    snappy: options.compression === 'snappy',
    deflate: options.compression === 'deflate',
    authSecret: options.auth ?? null,
  }
}

function body(options, number) {
  const name = `m${number}`
  return options.size ? `${name} `.padEnd(options.size, '.') : name
}

function acknowledged(number) {
  console.log(`acknowledged m${number}`)
}

// The arguments name=value; numbers as numbers.
function parse(args) {
  const pairs = args.map((argument) => {
    const at = argument.indexOf('=')
    const value = argument.slice(at + 1)
    return [argument.slice(0, at), /^\d+$/.test(value) ? Number(value) : value]
  })
  return Object.fromEntries(pairs)
}

const VERBS = {publish, publish_multi, publish_deferred, consume}
const [verb, ...args] = process.argv.slice(2)
VERBS[verb](parse(args))
  .then(() => process.exit(0))
  .catch((error) => {
    console.error(error)
    process.exit(1)
  })
