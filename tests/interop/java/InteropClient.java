import com.sproutsocial.nsq.BackoffHandler;
import com.sproutsocial.nsq.Client;
import com.sproutsocial.nsq.Config;
import com.sproutsocial.nsq.DirectSubscriber;
import com.sproutsocial.nsq.Message;
import com.sproutsocial.nsq.MessageHandler;
import com.sproutsocial.nsq.NSQException;
import com.sproutsocial.nsq.Publisher;
import com.sproutsocial.nsq.Subscriber;

import java.io.FileInputStream;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;

/** Drives nsq-j as ../README.md defines. */
public final class InteropClient {
    private static final long STARTED = System.nanoTime();
    private static final long RETRY_PAUSE_MS = 50;
    private static final int RECONNECT_PAUSE_S = 1;
    private static final int LOOKUP_FAILURES = 5;
    private static final int FIRST_BACKOFF_MS = 500;
    private static final int LONGEST_BACKOFF_MS = 5_000;

    private final Options options;

    private InteropClient(Options options) {
        this.options = options;
    }

    public static void main(String[] arguments) throws Exception {
        InteropClient client = new InteropClient(Options.parse(arguments));
        switch (arguments[0]) {
            case "publish" -> client.publish();
            case "publish_multi" -> client.publishMulti();
            case "publish_deferred" -> client.publishDeferred();
            case "consume" -> client.consume();
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    private void publish() throws Exception {
        Publisher publisher = publisher();
        for (int number = 0; number < options.number("count", 0); number++) {
            while (!published(publisher, options.body(number))) {
                Thread.sleep(RETRY_PAUSE_MS);
            }
            acknowledged(number);
            Thread.sleep(options.number("pace", 0));
        }
        publisher.getClient().stop();
    }

    private boolean published(Publisher publisher, byte[] body) {
        try {
            publisher.publish(options.text("topic"), body);
            return true;
        } catch (NSQException failure) {
            failure.printStackTrace();
            return false;
        }
    }

    private void publishMulti() throws Exception {
        Publisher publisher = publisher();
        List<byte[]> bodies = IntStream.range(0, options.number("count", 0)).mapToObj(options::body).toList();
        publisher.publish(options.text("topic"), bodies);
        IntStream.range(0, bodies.size()).forEach(InteropClient::acknowledged);
        publisher.getClient().stop();
    }

    private void publishDeferred() throws Exception {
        Publisher publisher = publisher();
        int delay = options.number("delay", 0);
        publisher.publishDeferred(options.text("topic"), options.body(0), delay, TimeUnit.MILLISECONDS);
        acknowledged(0);
        publisher.getClient().stop();
    }

    private void consume() throws Exception {
        Subscriber subscriber = options.has("lookupd")
                ? new Subscriber(Client.getDefaultClient(), RECONNECT_PAUSE_S, LOOKUP_FAILURES, options.text("lookupd"))
                : new DirectSubscriber(RECONNECT_PAUSE_S, options.text("nsqd"));
        secure(subscriber.getClient());
        subscriber.setConfig(config());
        subscriber.setDefaultMaxInFlight(options.number("max_in_flight", 1));
        subscriber.subscribe(options.text("topic"), options.text("channel"), handler());
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            subscriber.getClient().stop();
            // SIGTERM is how this program is asked to end, so that is no failure.
            Runtime.getRuntime().halt(0);
        }));
        Thread.currentThread().join();
    }

    /** nsq-j leaves finishing to the handler unless a BackoffHandler does it and judges by exceptions. */
    private MessageHandler handler() {
        AtomicInteger failures = new AtomicInteger(options.number("fail", 0));
        MessageHandler failing = message -> {
            print(message);
            if (failures.getAndDecrement() > 0) {
                throw new IllegalStateException("told to fail");
            }
            hold(message);
        };
        MessageHandler finishing = message -> {
            print(message);
            if (options.has("requeue") && message.getAttempts() == 1) {
                message.requeue(options.number("requeue", 0));
            } else {
                hold(message);
                message.finish();
            }
        };
        return options.has("fail") ? new BackoffHandler(failing, FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS) : finishing;
    }

    private void hold(Message message) {
        long done = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(options.number("hold", 0));
        for (long left; (left = TimeUnit.NANOSECONDS.toMillis(done - System.nanoTime())) > 0; ) {
            try {
                Thread.sleep(Math.min(left, options.number("touch", Integer.MAX_VALUE)));
            } catch (InterruptedException stopped) {
                throw new IllegalStateException(stopped);
            }
            if (options.has("touch")) {
                message.touch();
            }
        }
    }

    private Publisher publisher() throws Exception {
        Publisher publisher = new Publisher(options.text("nsqd"));
        secure(publisher.getClient());
        publisher.setConfig(config());
        return publisher;
    }

    private Config config() {
        Config config = new Config();
        config.setTlsV1(options.has("tls"));
        config.setSnappy("snappy".equals(options.text("compression")));
        config.setDeflate("deflate".equals(options.text("compression")));
        if (options.has("sample_rate")) {
            config.setSampleRate(options.number("sample_rate", 0));
        }
        return config;
    }

    private void secure(Client client) throws Exception {
        if (options.has("tls")) {
            client.setSSLSocketFactory(trusting(options.text("tls")));
        }
        if (options.has("auth")) {
            client.setAuthSecret(options.text("auth"));
        }
    }

    private static SSLSocketFactory trusting(String file) throws Exception {
        KeyStore authorities = KeyStore.getInstance(KeyStore.getDefaultType());
        authorities.load(null, null);
        try (FileInputStream pem = new FileInputStream(file)) {
            CertificateFactory certificates = CertificateFactory.getInstance("X.509");
            authorities.setCertificateEntry("authority", certificates.generateCertificate(pem));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(authorities);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context.getSocketFactory();
    }

    private static void acknowledged(int number) {
        System.out.println("acknowledged m" + number);
    }

    private static void print(Message message) {
        String body = new String(message.getData(), StandardCharsets.UTF_8);
        String name = body.split(" ", 2)[0];
        long milliseconds = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - STARTED);
        // One call, so that lines of several threads stay whole.
        System.out.println("message " + name + " " + message.getAttempts() + " " + body.length() + " " + milliseconds);
    }

    /** The arguments name=value. */
    private record Options(Map<String, String> values) {
        static Options parse(String[] arguments) {
            Map<String, String> values = new HashMap<>();
            Arrays.stream(arguments).skip(1).map(argument -> argument.split("=", 2))
                    .forEach(pair -> values.put(pair[0], pair[1]));
            return new Options(values);
        }

        boolean has(String name) {
            return values.containsKey(name);
        }

        String text(String name) {
            return values.get(name);
        }

        int number(String name, int otherwise) {
            return has(name) ? Integer.parseInt(text(name)) : otherwise;
        }

        byte[] body(int number) {
            String name = "m" + number;
            int padding = number("size", 0) - name.length() - 1;
            String body = padding < 0 ? name : name + " " + ".".repeat(padding);
            return body.getBytes(StandardCharsets.UTF_8);
        }
    }
}
